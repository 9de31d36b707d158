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
                try change { try $0.delete(identifier, baseVersion, recursively: options.contains(.recursive)) }
            }
            for case .applyThenFail(let error) in effects { throw error }
        }
    }

    private func checkWriting() throws {
        guard options.writing else { throw FileProviderError(.featureUnsupported, "this remote cannot be written") }
    }

    private func write(
        _ call: ProviderCall, _ contents: ContentSource?,
        _ body: (inout RemoteTree, RemoteWriting) throws -> RemoteWriting.Answer
    ) async throws -> ItemChange {
        try checkWriting()
        return try await perform(call) { effects in
            for case .refuse(let reason) in effects { return .refused(reason: reason) }
            var writing = RemoteWriting(options: options)
            if let contents {
                writing.content = .bytes(try await Upload(remote: remote, effects: effects).take(contents))
            }
            var shouldFetch = false
            for effect in effects {
                switch effect {
                case .shouldFetchContent(let other):
                    writing.storedContent = other
                    shouldFetch = true
                case .answerIdentifier(let identifier): writing.newIdentifier = identifier
                default: break
                }
            }
            let answer: RemoteWriting.Answer
            do {
                answer = try change { try body(&$0, writing) }
            } catch let error as RemoteWriting.NotThere {
                return .refused(reason: "the remote has nothing called '\(error.name)' there")
            }
            for case .applyThenFail(let error) in effects { throw error }
            return .applied(answer.item, stillPending: answer.pending, shouldFetchContent: shouldFetch)
        }
    }
}

/// One upload to an in-memory remote, with scripted faults.
private struct Upload {
    let remote: InMemoryState
    let effects: [FaultScript.Effect]

    func take(_ source: ContentSource) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        var offset: Int64 = 0
        try await stop(after: 0)
        // The source is read at least once, because it may have grown.
        repeat {
            if remote.options.chunkDelay > .zero { try await Task.sleep(for: remote.options.chunkDelay) }
            try Task.checkCancellation()
            let end = min(source.size, offset + max(1, remote.options.uploadChunkSize), nextStop(after: offset))
            bytes += try source.read(at: offset, count: Int(end - offset))
            offset = end
            try await stop(after: offset)
        } while offset < source.size
        try Task.checkCancellation()
        return bytes
    }

    /// The offset of the next scripted fault.
    private func nextStop(after offset: Int64) -> Int64 {
        effects.compactMap { effect -> Int64? in
            switch effect {
            case .holdUpload(let count, _), .failUpload(let count, _): count
            default: nil
            }
        }.filter { $0 > offset }.min() ?? .max
    }

    private func stop(after count: Int64) async throws {
        for effect in effects {
            switch effect {
            case .holdUpload(count, let gate): try await gate.pass()
            case .failUpload(count, let error): throw error
            default: break
            }
        }
    }
}
