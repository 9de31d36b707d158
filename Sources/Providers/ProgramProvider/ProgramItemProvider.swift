import FileProvider

/// The provider of a program of the level items: each call is one message.
final class ProgramItemProvider: FileProviderReplicatedExtension, RetryingProvider {
    let calls: ProgramCalls
    private let files: TransferFiles
    private let known: @Sendable () -> ProgramFeatures

    /// - Parameter known: the features that the program has declared.
    init(host: ProgramHost, files: TransferFiles, known: @escaping @Sendable () -> ProgramFeatures) {
        calls = ProgramCalls(host: host)
        self.files = files
        self.known = known
    }

    var features: ProviderFeatures { known().features }

    func invalidate() async { await calls.host.close() }

    func retryNow() async { await calls.host.retryNow() }

    // MARK: - Reading

    func item(for identifier: ItemIdentifier, request: FileProviderRequest) async throws -> FileProviderItem {
        let result: ItemResult = try await calls.ask("item", ItemParameters(identifier, request))
        let item = try item(result.item)
        guard item.itemIdentifier == identifier else {
            throw FileProviderError(
                .malformedResponse, "the program answers for '\(identifier)' with '\(item.itemIdentifier)'")
        }
        return item
    }

    private func item(_ item: ProgramItem) throws(FileProviderError) -> FileProviderItem { try item.item(known()) }

    /// An item of a list, also one that cannot be used.
    ///
    /// - Parameter container: the parent of an item that cannot be used and names none.
    func listed(_ element: ListElement<ProgramItem>, in container: ItemIdentifier) -> FileProviderItem {
        switch element {
        case .usable(let described):
            do throws(FileProviderError) {
                return try item(described)
            } catch {
                return FileProviderItem(
                    unusable: error.message, identifier: described.itemIdentifier,
                    parent: described.parentItemIdentifier.map { ItemIdentifier($0) } ?? container,
                    filename: described.filename)
            }
        case .unusable(let texts, let mistake):
            return FileProviderItem(
                unusable: mistake, identifier: texts["itemIdentifier"],
                parent: texts["parentItemIdentifier"].map { ItemIdentifier($0) } ?? container,
                filename: texts["filename"])
        }
    }

    func enumerator(for container: ItemIdentifier, request: FileProviderRequest) throws -> any FileProviderEnumerator {
        if container == .workingSet, !features.changeFeed {
            throw FileProviderError(.featureUnsupported, "the program does not report changes")
        }
        if container == .trashContainer, !features.trash {
            throw FileProviderError(.featureUnsupported, "the program has no trash")
        }
        return ProgramItemEnumerator(provider: self, container: container, request: request)
    }

    func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        if let range, range.isEmpty { return try await item(for: identifier, request: request) }
        return try await files.fetch(
            identifier.rawValue, range: range, isWhole: !features.partialContentFetching, into: sink
        ) { [self] start, length, into, last in
            let expected = (last as FileProviderItem?)?.itemVersion.contentVersion ?? version
            let result: ItemResult = try await calls.ask(
                "fetchContents",
                FetchParameters(
                    itemIdentifier: identifier.rawValue, contentVersion: expected?.text, offset: start, length: length,
                    into: into, reason: request.reason.rawValue))
            let item = try item(result.item)
            guard item.kind == .file, let size = item.documentSize, size >= 0 else {
                throw FileProviderError(.malformedResponse, "'\(identifier)' is no file, and the program has read it")
            }
            guard item.itemVersion.contentVersion == expected ?? item.itemVersion.contentVersion else {
                throw FileProviderError(.versionNoLongerAvailable)
            }
            return (item, size)
        }
    }

    func fetchThumbnails(
        for identifiers: [ItemIdentifier], requestedSize: ThumbnailSize, request: FileProviderRequest,
        perThumbnailCompletionHandler: @escaping @Sendable (ItemIdentifier, Result<[UInt8]?, any Error>) -> Void
    ) async throws {
        guard features.thumbnails else {
            throw FileProviderError(.featureUnsupported, "the program has no thumbnails")
        }
        try await fetchEachThumbnail(
            of: identifiers, perThumbnailCompletionHandler: perThumbnailCompletionHandler
        ) { [self] identifier in
            try await thumbnail(of: identifier.rawValue, size: requestedSize, reason: request.reason)
        }
    }

    func thumbnail(
        of identifier: String, size: ThumbnailSize, reason: FileProviderRequest.Reason
    ) async throws -> [UInt8]? {
        try await files.fetchThumbnail(of: identifier) { [calls] into in
            try await calls.ask(
                "fetchThumbnail",
                FetchThumbnailParameters(
                    itemIdentifier: identifier, width: size.width, height: size.height, into: into,
                    reason: reason.rawValue))
        }
    }

    func quota() async throws -> RemoteQuota? {
        guard known().quota == true else { return nil }
        let result: QuotaResult = try await calls.ask("quota", NoParameters())
        return RemoteQuota(result)
    }

    // MARK: - Changing

    func createItem(
        basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions,
        request: FileProviderRequest
    ) async throws -> ItemChange {
        let parameters = ItemChangeParameters(
            item: ProgramItem(template), fields: fields.names, options: options.names)
        return try await change("createItem", parameters, of: template, contents)
    }

    func modifyItem(
        _ item: FileProviderItem, baseVersion: ItemVersion, changedFields: ItemFields, contents: ContentSource?,
        options: ModifyItemOptions, request: FileProviderRequest
    ) async throws -> ItemChange {
        let parameters = ItemChangeParameters(
            item: ProgramItem(item), baseVersion: ProgramVersion(baseVersion), fields: changedFields.names,
            options: options.names)
        return try await change("modifyItem", parameters, of: item, contents)
    }

    func deleteItem(
        identifier: ItemIdentifier, baseVersion: ItemVersion, options: DeleteItemOptions, request: FileProviderRequest
    ) async throws {
        do {
            let _: NoResult = try await calls.change(
                "deleteItem",
                DeleteItemParameters(
                    itemIdentifier: identifier.rawValue, baseVersion: ProgramVersion(baseVersion),
                    options: options.names))
        } catch let failure as ProgramFailure {
            throw failure.itemError(known())
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return
        }
    }

    func importDidFinish() async {
        // A program that has no use for it answers with an error.
        let _: NoResult? = try? await calls.ask("importDidFinish", NoParameters())
    }

    /// Sends a creation or modification, with a copy of the contents.
    private func change(
        _ method: String, _ parameters: ItemChangeParameters, of item: FileProviderItem, _ contents: ContentSource?
    ) async throws -> ItemChange {
        guard let contents else { return try await change(method, parameters, of: item, size: nil) }
        let sent = known().uploadProgress == true ? SentBytes(of: contents) : nil
        return try await files.withCopy(of: contents, countsAsSent: sent == nil) { [self] from in
            var parameters = parameters
            parameters.from = from
            parameters.item.documentSize = contents.size
            let made = try await change(method, parameters, of: item, size: contents.size) { sent?.note($0) }
            sent?.noteAll()
            return made
        }
    }

    private func change(
        _ method: String, _ parameters: ItemChangeParameters, of sent: FileProviderItem, size: Int64?,
        onSent: @escaping @Sendable (Int64) -> Void = { _ in }
    ) async throws -> ItemChange {
        let result: ItemChangeResult
        do {
            result = try await calls.change(method, parameters, onSent: onSent)
        } catch let failure as ProgramFailure {
            throw failure.itemError(known())
        }
        if let reason = result.refused { return .refused(reason: reason) }
        func wrong(_ what: String) -> FileProviderError {
            FileProviderError(
                .malformedResponse, "the program answers '\(method)' of '\(sent.filename)' \(what)",
                itemIdentifier: sent.itemIdentifier)
        }
        guard let item = try result.item.map({ try item($0) }) else { throw wrong("without the item") }
        guard item.kind == sent.kind else { throw wrong("with an item of another kind") }
        let shouldFetch = result.shouldFetchContent ?? false
        var pending: ItemFields = []
        for name in result.stillPending ?? [] {
            guard let field = ItemFields(name: name) else { throw wrong("with an unknown field '\(name)'") }
            pending.insert(field)
        }
        if let size, !shouldFetch, !pending.contains(.contents), item.documentSize != size {
            throw wrong("with \(item.documentSize ?? 0) bytes instead of \(size)")
        }
        return .applied(item, stillPending: pending, shouldFetchContent: shouldFetch)
    }
}

/// Lists a container of a program, or reports its changes.
private struct ProgramItemEnumerator: FileProviderEnumerator {
    let provider: ProgramItemProvider
    let container: ItemIdentifier
    let request: FileProviderRequest

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        var parameters = EnumerateParameters(container, request)
        (parameters.page, parameters.limit) = (page.rawValue.text, suggestedPageSize)
        let result: ItemPageResult = try await provider.calls.ask("enumerateItems", parameters)
        return ItemPage(
            items: result.items.map { provider.listed($0, in: container) },
            nextPage: result.next.map { FileProviderPage(rawValue: Array($0.utf8)) })
    }

    func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch {
        var parameters = EnumerateParameters(container, request)
        (parameters.anchor, parameters.limit) = (String(decoding: anchor.rawValue, as: UTF8.self), suggestedBatchSize)
        let result: ItemChangesResult = try await provider.calls.ask("enumerateChanges", parameters)
        return ChangeBatch(
            updated: result.updated.map { provider.listed($0, in: .rootContainer) },
            deleted: result.deleted.map { ItemIdentifier($0) }, anchor: SyncAnchor(result.anchor),
            moreComing: result.moreComing ?? false)
    }

    func currentSyncAnchor() async throws -> SyncAnchor? {
        let result: AnchorResult = try await provider.calls.ask(
            "currentSyncAnchor", EnumerateParameters(container, request))
        return result.anchor.map { SyncAnchor($0) }
    }
}
