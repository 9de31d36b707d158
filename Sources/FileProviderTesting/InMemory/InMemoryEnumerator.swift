import FileProvider

/// Lists a directory of an in-memory remote, or reports its changes. The token of a page is the serial number of its
/// last item.
struct InMemoryEnumerator: FileProviderEnumerator {
    let provider: InMemoryProvider
    let container: ItemIdentifier
    let request: FileProviderRequest

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        try await perform(.enumerate) { effects in
            let tree = provider.tree
            if let document = tree[container], document.kind == .file { return ItemPage(items: [document]) }
            guard container == .trashContainer || tree[container]?.kind == .directory else {
                throw FileProviderError.noSuchItem(container)
            }
            let place = String(decoding: page.rawValue, as: UTF8.self)
            guard let start = page == .initial ? 0 : Int(place) else {
                throw FileProviderError(.pageExpired, "no page begins at '\(place)'")
            }
            let size = min(suggestedPageSize, provider.options.pageSize ?? .max)
            let (items, next) = tree.page(of: container, after: start, size: size)
            var answer = ItemPage(
                items: provider.options.directoryVersionsCoverTrees ? items.map { tree.covering($0) } : items,
                nextPage: next.map { FileProviderPage(rawValue: Array(String($0).utf8)) })
            for effect in effects {
                switch effect {
                case .pageToken(let token): answer.nextPage = token ?? page
                case .extraItems(let extra): answer.items += extra
                case .omissions(let texts): answer.omissions += texts
                case .samePageAgain:
                    answer.items = tree.page(of: container, after: 0, size: size).items
                    answer.nextPage = FileProviderPage(rawValue: Array(String(start + 1).utf8))
                default: break
                }
            }
            return answer
        }
    }

    func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch {
        try await perform(.changes) { effects in
            for case .everNewChanges in effects {
                provider.changeSilently {
                    _ = $0.addFile("\(UInt64.random(in: 0...UInt64.max))", content: RemoteContent("new"))
                }
            }
            let tree = provider.tree
            let isDocument = tree[container]?.kind == .file
            guard container == .workingSet || isDocument else { throw FileProviderError(.featureUnsupported) }
            for case .endlessChanges in effects {
                return ChangeBatch(anchor: SyncAnchor("\(UInt64.random(in: 0...UInt64.max))"), moreComing: true)
            }
            let limit = max(1, min(suggestedBatchSize, provider.options.pageSize ?? .max))
            guard var batch = tree.changes(since: anchor, limit: limit) else {
                throw FileProviderError(.syncAnchorExpired)
            }
            if isDocument {
                batch.updated = batch.updated.filter { $0.itemIdentifier == container }
                batch.deleted = batch.deleted.filter { $0 == container }
            }
            for effect in effects {
                switch effect {
                case .sameAnchorMoreComing: (batch.anchor, batch.moreComing) = (anchor, true)
                case .everNewChanges: batch.moreComing = true
                case .anchor(let other): batch.anchor = other
                default: break
                }
            }
            return batch
        }
    }

    func currentSyncAnchor() async throws -> SyncAnchor? {
        try await perform(.anchor) { effects in
            for case .anchor(let other) in effects { return other }
            return provider.tree.anchor
        }
    }

    private func perform<Value>(
        _ kind: ProviderCallKind, _ body: ([FaultScript.Effect]) async throws -> Value
    ) async throws -> Value {
        try await provider.perform(ProviderCall(kind: kind, identifier: container, request: request), body)
    }
}
