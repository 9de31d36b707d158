import FileProvider
import HTTPTransport
import PathAddressing

/// Changes. A file comes whole or not at all: it is sent under a hidden name beside its place, and moved there.
extension WebDAVRemote {
    package func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        let name = path.name ?? "/"
        try await connect()
        if isOwnCloud {
            contents.growing?.giveUp()
            return try await replace(contents, at: path, attributes, if: condition)
        }
        let capabilities = try await capabilities(toWrite: contents, in: path.parent)
        if capabilities.fate(of: name) != .kept {
            contents.growing?.giveUp()
            return try await writeInPlace(contents, to: path, if: condition, capabilities)
        }
        if condition == .absent, contents.size <= Self.mostAtOnce, capabilities.showsOnlyWhole,
            capabilities.refusesReplacing
        {
            contents.growing?.giveUp()
            return try await make(contents, at: path, attributes, capabilities)
        }
        let early = try await sentEarly(contents, capabilities)
        let hidden = try early ?? makeHiddenPath(in: path.parent)
        var held: HeldAttributes?
        do {
            if early == nil { try await put(.content(contents), at: hidden, for: name) }
            // Not every server says of its own accord that it has lost some; and where the tag stays, the look at it now is
            // the one that would come after the move.
            let isLookedAt =
                capabilities.tagsSurviveMoves || capabilities.keepsAttributes || !capabilities.showsOnlyWhole
            let sent = isLookedAt ? try await sight(of: hidden) : nil
            guard !isLookedAt || sent?.entry.kind == .file && sent?.entry.size == contents.size else {
                throw FileProviderError(.malformedResponse, "\(client.base.host) has not taken all of '\(name)'")
            }
            if let sent, capabilities.keepsAttributes {
                held = await holdIfWorthIt(attributes, of: sent.resource, at: hidden)
            }
            if let sent, capabilities.tagsSurviveMoves {
                self.sent.note(name, .tag(sent.entry.tag), date: attributes.contentModificationDate)
            }
            try await publish(hidden, at: path, if: condition, capabilities)
            hiddenFiles.remove(hidden)
            if let sent { self.sent.forget(name, tag: sent.entry.tag) }
            if let sent, capabilities.tagsSurviveMoves {
                var entry = sent.entry.with(held)
                entry.name = name
                return entry
            }
        } catch {
            removeLater(hidden)
            if !capabilities.tagsSurviveMoves { await noteLost(contents, named: name, attributes, because: error) }
            throw error
        }
        do {
            guard let entry = try await (capabilities.headsAreTrue ? glance(at: path) : sight(of: path))?.entry else {
                throw RemoteConditionFailure(present: nil)
            }
            guard entry.size == contents.size else { throw RemoteConditionFailure(present: entry) }
            return entry.with(held)
        } catch {
            await noteLost(contents, named: name, attributes, because: error)
            throw error
        }
    }

    /// So much is held in memory, and is there in one moment.
    static let mostAtOnce: Int64 = 256 << 10

    /// For servers that show nothing but what is whole, and write over nothing: what is new and small needs no hidden name.
    private func make(
        _ contents: ContentSource, at path: RemotePath, _ attributes: RemoteAttributes,
        _ capabilities: ServerCapabilities
    ) async throws -> RemoteEntry {
        let name = path.name ?? "/"
        // Reading the end confirms the content: nothing is sent that is not of one generation.
        let bytes = try await BlockingWork.run { try contents.read(at: 0, count: Int(contents.size)) }
        do {
            try await put(.bytes(bytes), at: path, for: name, ["If-None-Match": "*"])
            guard let made = try await capabilities.headsAreTrue ? glance(at: path) : sight(of: path) else {
                throw FileProviderError(.malformedResponse, "\(client.base.host) has not taken '\(name)'")
            }
            guard made.entry.kind == .file, made.entry.size == contents.size else {
                throw RemoteConditionFailure(present: made.entry)
            }
            guard capabilities.keepsAttributes else { return made.entry }
            return made.entry.with(await holdIfWorthIt(attributes, of: made.resource, at: path))
        } catch {
            await noteLost(contents, bytes, named: name, attributes, because: error)
            throw error
        }
    }

    /// For ownCloud and Nextcloud: there a file that something is moved onto becomes another, and what is sent is seen
    /// only when it is whole.
    private func replace(
        _ contents: ContentSource, at path: RemotePath, _ attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        let name = path.name ?? "/"
        var fields: HTTPFields = [:]
        switch condition {
        case .always, .empty: break
        case .absent: fields["If-None-Match"] = "*"
        case .unchanged(let tag):
            let there = try await sight(of: path)
            guard let there, there.entry.tag == tag else { throw RemoteConditionFailure(present: there?.entry) }
            fields = there.etag.map { Self.condition(.match, $0, of: client.url(of: path)) } ?? [:]
        }
        // These servers take the date with the content, in seconds.
        if let date = attributes.contentModificationDate { fields["X-OC-MTime"] = String(date.seconds) }
        do {
            if try await !writeInChunks(contents, to: path, attributes, if: condition) {
                try await put(.content(contents), at: path, for: name, fields)
            }
            let entry = try await entry(at: path)
            guard entry.size == contents.size else { throw RemoteConditionFailure(present: entry) }
            return entry
        } catch {
            await noteLost(contents, named: name, attributes, isDated: true, because: error)
            throw error
        }
    }

    /// For a name that nothing can be moved to.
    private func writeInPlace(
        _ contents: ContentSource, to path: RemotePath, if condition: RemoteCondition,
        _ capabilities: ServerCapabilities
    ) async throws -> RemoteEntry {
        let name = path.name ?? "/"
        guard capabilities.fate(of: name) == .sent else { throw oddName(name) }
        let there = try await sight(of: path)
        switch condition {
        case .always, .empty: break
        case .absent: if let there { throw RemoteConditionFailure(present: there.entry) }
        case .unchanged(let tag):
            guard let there, there.entry.tag == tag else { throw RemoteConditionFailure(present: there?.entry) }
        }
        // Nobody may see a part: what cannot be confirmed before it is sent is not sent.
        let bytes = try await BlockingWork.run {
            try contents.read(at: 0, count: Int(min(contents.size, Self.mostInPlace)))
        }
        guard Int64(bytes.count) == contents.size else { throw oddName(name) }
        try await put(.bytes(bytes), at: path, for: name)
        let entry = try await entry(at: path)
        guard entry.size == contents.size else { throw RemoteConditionFailure(present: entry) }
        return entry
    }

    private static let mostInPlace: Int64 = 8 << 20

    func oddName(_ name: String) -> FileProviderError {
        FileProviderError(
            .cannotSynchronize, "\(client.base.host) does not keep names like '\(name)': give it another one")
    }

    func put(_ body: HTTPBody, at path: RemotePath, for name: String, _ conditions: HTTPFields = [:]) async throws {
        var fields = conditions
        fields["Content-Type"] = "application/octet-stream"
        let response = try await client.send("PUT", client.url(of: path), fields, body: body)
        if response.head.isSuccess { return }
        if response.status == 412 { throw RemoteConditionFailure(present: try await sight(of: path)?.entry) }
        // Servers say all kinds of things of a directory that is missing.
        if [403, 404, 409, 500].contains(response.status), try await sight(of: path.parent, isDirectory: true) == nil {
            throw FileProviderError(.noSuchItem, "\(client.base.host) has no directory for '\(name)'")
        }
        throw WebDAVClient.failure(response, of: name, isChange: true)
    }

    /// Gives what was sent its name.
    private func publish(
        _ hidden: RemotePath, at path: RemotePath, if condition: RemoteCondition, _ capabilities: ServerCapabilities
    ) async throws {
        switch condition {
        case .absent:
            if !capabilities.refusesOverwriting { try await requireAbsence(path) }
            try await move(hidden, to: path, kind: .file, overwriting: false)
        case .always, .empty:
            try await move(hidden, to: path, kind: .file, overwriting: true)
        case .unchanged(let tag):
            guard let there = try await sight(of: path), there.entry.tag == tag else {
                throw RemoteConditionFailure(present: try await sight(of: path)?.entry)
            }
            let state = capabilities.movesConditionally ? there.etag : nil
            do {
                try await move(hidden, to: path, kind: .file, overwriting: true, ifTargetHas: state)
            } catch let failure as RemoteConditionFailure where state != nil && failure.present?.tag == tag {
                // The server refuses the very ETag that the file has: nobody else has changed it.
                try await move(hidden, to: path, kind: .file, overwriting: true)
            }
        }
    }

    func requireAbsence(_ path: RemotePath) async throws {
        if let there = try await sight(of: path) { throw RemoteConditionFailure(present: there.entry) }
    }

    /// - Parameter state: the tag that the target must have, as the server writes it.
    private func move(
        _ path: RemotePath, to newPath: RemotePath, kind: ItemKind, overwriting: Bool, ifTargetHas state: String? = nil
    ) async throws {
        let target = client.url(of: newPath, isDirectory: kind == .directory)
        var fields: HTTPFields = ["Destination": target.description, "Overwrite": overwriting ? "T" : "F"]
        if let state { fields["If"] = "<\(target)> ([\(state)])" }
        let response = try await client.send(
            "MOVE", client.url(of: path, isDirectory: kind == .directory), fields, isLong: true)
        switch response.status {
        case 201, 204: return
        case 200:
            // Anybody may say that, a page to log in, too.
            if try await sight(of: newPath, isDirectory: kind == .directory) != nil,
                try await sight(of: path, isDirectory: kind == .directory) == nil
            {
                return
            }
            throw WebDAVClient.failure(response, of: newPath.name ?? "/", isChange: true)
        case 412: throw RemoteConditionFailure(present: try await sight(of: newPath)?.entry)
        case 207:
            throw FileProviderError(
                .malformedResponse, "\(client.base.host) has moved '\(path.name ?? "/")' only in part")
        case 404, 409, 500:
            if try await sight(of: newPath.parent, isDirectory: true) == nil {
                throw FileProviderError(
                    .noSuchItem, "\(client.base.host) has no directory for '\(newPath.name ?? "/")'")
            }
            fallthrough
        default: throw WebDAVClient.failure(response, of: newPath.name ?? "/", isChange: true)
        }
    }

    package func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        try await connect()
        if let name = path.name, HiddenName.isOne(name) { try hiddenFiles.add(path, isDirectory: true) }
        // What comes into it needs to know.
        async let trial = capabilities(probingIn: path.parent)
        let made = try await makeDirectory(at: path, attributes)
        _ = try? await trial
        return made
    }

    private func makeDirectory(
        at path: RemotePath, _ attributes: RemoteAttributes
    ) async throws -> RemoteEntry {
        // Some servers make again what is there, and say that they did.
        try await requireAbsence(path)
        if let name = path.name, ServerCapabilities.isOdd(name),
            try await capabilities(probingIn: path.parent).fate(of: name) == .lost
        {
            throw oddName(name)
        }
        let response = try await client.send("MKCOL", client.url(of: path, isDirectory: true))
        guard response.head.isSuccess else {
            if response.status == 405 || response.status == 409, let there = try await sight(of: path) {
                throw RemoteConditionFailure(present: there.entry)
            }
            throw WebDAVClient.failure(response, of: path.name ?? "/", isChange: true)
        }
        guard let made = try await sight(of: path, isDirectory: true), made.entry.kind == .directory else {
            throw FileProviderError(.malformedResponse, "\(client.base.host) has not made '\(path.name ?? "/")'")
        }
        guard capabilityStore.capabilities?.keepsAttributes == true else { return made.entry }
        return made.entry.with(await holdIfWorthIt(attributes, of: made.resource, at: path))
    }

    package func makeSymbolicLink(
        at path: RemotePath, to target: String, attributes: RemoteAttributes
    ) async throws -> RemoteEntry {
        throw FileProviderError(.featureUnsupported, "WebDAV has no symbolic links")
    }

    package func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        try await connect()
        let capabilities = try await capabilities(probingIn: newPath.parent)
        if let name = newPath.name, capabilities.fate(of: name) != .kept {
            throw oddName(name)
        }
        if let name = path.name, let newName = newPath.name {
            sent.carry(name, to: newName)
        }
        // Whether a directory may be overwritten was not tried.
        if kind == .directory || !capabilities.refusesOverwriting { try await requireAbsence(newPath) }
        try await move(path, to: newPath, kind: kind, overwriting: false)
        guard let moved = try await sight(of: newPath, isDirectory: kind == .directory)?.entry, moved.kind == kind
        else {
            throw FileProviderError(
                .malformedResponse, "\(client.base.host) has lost '\(newPath.name ?? "/")' in a move")
        }
        return moved
    }

    package func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try await connect()
        try await delete(path, kind: kind, if: condition, isKept: false)
        if let name = path.name, HiddenName.isOne(name) { hiddenFiles.remove(path) }
    }

    /// - Parameter isKept: it has to be in the server's trash bin afterwards.
    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition, isKept: Bool) async throws {
        var fields: HTTPFields = [:]
        if case .unchanged(let tag) = condition {
            let capabilities = try await capabilities(probingIn: path.parent)
            guard let there = try await sight(of: path) else { return }
            guard there.entry.tag == tag else { throw RemoteConditionFailure(present: there.entry) }
            if let etag = there.etag {
                fields = Self.condition(capabilities.deletions, etag, of: client.url(of: path))
            }
        }
        try await deletionTimes.run(path.name ?? "/", isKept: isKept) { [fields] in
            do {
                try await delete(path, isDirectory: kind == .directory, fields)
            } catch let failure as RemoteConditionFailure where condition.isOf(failure.present?.tag) && !fields.isEmpty
            {
                // The server refuses the very ETag that the file has: nobody else has changed it.
                try await delete(path, isDirectory: kind == .directory, [:])
            }
        }
    }

    static func condition(_ conditions: ServerCapabilities.Conditions, _ etag: String, of url: HTTPURL) -> HTTPFields {
        let quoted = etag.hasSuffix("\"") ? etag : "\"\(etag)\""
        switch conditions {
        case .none: return [:]
        case .tagged: return ["If": "<\(url)> ([\(quoted)])"]
        // A weak one matches nothing.
        case .match: return quoted.hasPrefix("W/") ? [:] : ["If-Match": quoted]
        }
    }

    private func delete(_ path: RemotePath, isDirectory: Bool, _ fields: HTTPFields) async throws {
        let response = try await client.send(
            "DELETE", client.url(of: path, isDirectory: isDirectory), fields, isLong: isDirectory)
        switch response.status {
        case 202, 204, 404, 410: return
        case 200:
            if try await sight(of: path, isDirectory: isDirectory) == nil { return }
            throw WebDAVClient.failure(response, of: path.name ?? "/", isChange: true)
        case 412:
            guard let there = try await sight(of: path) else { return }
            throw RemoteConditionFailure(present: there.entry)
        case 207 where isDirectory:
            // Some of it is still there: a server may not get as deep as the tree is.
            try await visitListing(of: path) { part in
                for entry in part.entries {
                    try await delete(path.appending(entry.name), isDirectory: entry.kind == .directory, [:])
                }
                return true
            }
            let rest = try await client.send("DELETE", client.url(of: path, isDirectory: true), isLong: true)
            guard rest.head.isSuccess && rest.status != 207 || rest.status == 404 else {
                throw WebDAVClient.failure(rest, of: path.name ?? "/", isChange: true)
            }
        default: throw WebDAVClient.failure(response, of: path.name ?? "/", isChange: true)
        }
    }
}
