import FileProvider

/// The reading calls.
extension InMemoryProvider {
    public func item(for identifier: ItemIdentifier, request: FileProviderRequest) async throws -> FileProviderItem {
        try await perform(ProviderCall(kind: .item, identifier: identifier, request: request)) { _ in
            let tree = tree
            guard let item = tree[identifier] else { throw FileProviderError.noSuchItem(identifier) }
            return options.directoryVersionsCoverTrees ? tree.covering(item) : item
        }
    }

    public func enumerator(
        for container: ItemIdentifier, request: FileProviderRequest
    ) throws -> any FileProviderEnumerator {
        try log.record(ProviderCall(kind: .enumerator, identifier: container, request: request)) {
            for case .fail(let error) in faults.effects(on: .enumerator, of: container) { throw error }
            switch container {
            case .trashContainer where !options.trash:
                throw FileProviderError(.featureUnsupported, "this remote has no trash")
            case .workingSet where !options.changeFeed:
                throw FileProviderError(.featureUnsupported, "this remote has no history")
            case _ where tree[container]?.kind == .file && !options.documentEnumeration:
                throw FileProviderError(.featureUnsupported, "a file is no container")
            default:
                return InMemoryEnumerator(provider: self, container: container, request: request)
            }
        }
    }

    public func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        let call = ProviderCall(kind: .fetch, identifier: identifier, range: range, request: request)
        return try await perform(call) { effects in
            let transfer = ContentTransfer(provider: self, effects: effects)
            return try await transfer.fetch(identifier, version: version, range: range, into: sink)
        }
    }

    public func fetchThumbnails(
        for identifiers: [ItemIdentifier], requestedSize: ThumbnailSize, request: FileProviderRequest,
        perThumbnailCompletionHandler: @escaping @Sendable (ItemIdentifier, Result<[UInt8]?, any Error>) -> Void
    ) async throws {
        for identifier in identifiers {
            let call = ProviderCall(kind: .thumbnail, identifier: identifier, request: request)
            do {
                let image = try await perform(call) { _ in options.thumbnails?[identifier] }
                perThumbnailCompletionHandler(identifier, .success(image))
            } catch let error as FileProviderError where error.code.reaction == .latchDomain {
                throw error
            } catch {
                perThumbnailCompletionHandler(identifier, .failure(error))
            }
        }
    }
}
