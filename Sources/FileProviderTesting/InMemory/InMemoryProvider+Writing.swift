import FileProvider

/// The writing calls: the contents are read completely, then the remote changes atomically.
extension InMemoryProvider {
    public func createItem(
        basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions,
        request: FileProviderRequest
    ) async throws -> ItemChange {
        let call = ProviderCall(
            kind: .create, identifier: template.itemIdentifier, request: request, name: template.filename,
            fields: fields, options: .create(options), size: contents?.size)
        return try await write(call, contents) { tree, writing in
            try tree.create(template, fields, options, writing)
        }
    }

    public func modifyItem(
        _ item: FileProviderItem, baseVersion: ItemVersion, changedFields: ItemFields, contents: ContentSource?,
        options: ModifyItemOptions, request: FileProviderRequest
    ) async throws -> ItemChange {
        let call = ProviderCall(
            kind: .modify, identifier: item.itemIdentifier, request: request, name: item.filename,
            fields: changedFields, baseVersion: baseVersion, options: .modify(options), size: contents?.size)
        return try await write(call, contents) { tree, writing in
            try tree.modify(item, baseVersion, changedFields, writing)
        }
    }

    public func deleteItem(
        identifier: ItemIdentifier, baseVersion: ItemVersion, options: DeleteItemOptions, request: FileProviderRequest
    ) async throws {
        let call = ProviderCall(
            kind: .delete, identifier: identifier, request: request, name: tree[identifier]?.filename,
            baseVersion: baseVersion, options: .delete(options))
        try checkWriting()
        try await perform(call) { effects in
            for case .refuse(let reason) in effects {
                throw FileProviderError(.deletionRejected, reason, itemIdentifier: identifier, item: tree[identifier])
            }
            if tree[identifier] != nil {
                let base = settled(baseVersion)
                try change { try $0.delete(identifier, base, options) }
            }
            for case .applyThenFail(let error) in effects { throw error }
        }
    }

    private func settled(_ version: ItemVersion) -> ItemVersion {
        guard options.settlesVersions, version.contentVersion.last == UInt8(ascii: "?") else { return version }
        var settled = version
        settled.contentVersion.removeLast()
        return settled
    }

    private func checkWriting() throws {
        guard options.writing else { throw FileProviderError(.featureUnsupported, "this remote cannot be written") }
    }

    private func write(
        _ call: ProviderCall, _ contents: ContentSource?,
        _ body: (inout RemoteTree, RemoteWriting) throws -> RemoteWriting.Answer?
    ) async throws -> ItemChange {
        try checkWriting()
        return try await perform(call) { effects in
            for case .refuse(let reason) in effects { return .refused(reason: reason) }
            for case .failFields(let fields, let error) in effects
            where call.fields?.isDisjoint(with: fields) == false {
                throw error
            }
            var writing = RemoteWriting(options: options)
            if let contents {
                writing.content = .bytes(try await ContentTransfer(provider: self, effects: effects).upload(contents))
            }
            var shouldFetch = false
            for effect in effects {
                switch effect {
                case .shouldFetchContent(let other):
                    writing.storedContent = other
                    shouldFetch = true
                case .leavePending(let fields): writing.options.holds.subtract(fields)
                case .answerIdentifier(let identifier): writing.newIdentifier = identifier
                default: break
                }
            }
            guard let answer = try changeSilently({ try body(&$0, writing) }) else {
                return .refused(reason: "the remote has no item '\(call.name ?? "")' there")
            }
            manager?.signalEnumerator()
            for case .applyThenFail(let error) in effects { throw error }
            return .applied(answer.item, stillPending: answer.pending, shouldFetchContent: shouldFetch)
        }
    }
}
