import FileProvider
import FileProviderPaths
import HTTPTransport

/// The requests that change one item, with their responses mapped to errors.
struct ChangeRequests: Sendable {
    let server: WebDAVServer

    private var client: WebDAVClient { server.client }

    /// The error of a refused change of the item at a path.
    ///
    /// - Parameter what: what the message names; nil for the item itself.
    /// - Throws: ``RemoteConditionFailure`` with the present item for 412, and for a directory that has the name; `noSuchItem`
    ///   when the parent directory does not exist, for which servers send many codes.
    func refusal(
        _ response: HTTPResponse, at path: RemotePath, of what: String? = nil
    ) async throws -> FileProviderError {
        if response.status == 412 { throw RemoteConditionFailure(present: try await server.propfind(path)?.entry) }
        if [403, 404, 409, 500].contains(response.status) { try await server.requireParent(of: path, what: what) }
        // Apache and nginx send it for content under a name that a directory has.
        if response.status == 409, let present = try await server.propfind(path)?.entry, present.kind == .directory {
            throw RemoteConditionFailure(present: present)
        }
        return WebDAVClient.failure(response, of: what ?? path.name ?? "/", isChange: true)
    }

    /// The header fields by which the server checks a condition of a file. The file is looked up only where it was not just before, or
    /// where the server does not check its ETag.
    ///
    /// - Returns: none where the server does not check the condition, which then holds at present.
    /// - Throws: ``RemoteConditionFailure``.
    func fields(
        checking condition: RemoteCondition, at path: RemotePath, by conditions: ServerCapabilities.Conditions
    ) async throws -> HTTPFields {
        let url = client.root.url(of: path)
        if let etag = server.lastETag(at: path, condition) {
            let fields = ETag.condition(conditions, etag, of: url)
            if !fields.isEmpty { return fields }
        }
        let there = try await server.require(condition, at: path)
        return there?.etag.map { ETag.condition(conditions, $0, of: url) } ?? [:]
    }

    /// The check before a change is repeated whose condition the server does not check.
    ///
    /// - Returns: nil where there is no condition.
    func recheck(_ condition: RemoteCondition, at path: RemotePath) -> (@Sendable () async throws -> Void)? {
        switch condition {
        case .always: nil
        case .absent, .unchanged: { try await server.require(condition, at: path) }
        case .empty: { try await requireEmpty(path) }
        }
    }

    /// The check before content is sent again in place. After an answer that was lost the content is there, and is no other client's.
    ///
    /// - Parameter bytes: all of the content; nil where it is not in memory.
    /// - Returns: nil where there is no condition.
    func recheck(
        _ condition: RemoteCondition, at path: RemotePath, toSend contents: ContentSource, _ bytes: [UInt8]?
    ) -> (@Sendable () async throws -> Void)? {
        guard let recheck = recheck(condition, at: path) else { return nil }
        return {
            do {
                try await recheck()
            } catch let failure as RemoteConditionFailure where failure.present != nil {
                let mark = bytes.map { LostUploads.digest(of: $0) }
                // Without an ETag and a date the bytes decide.
                let there = try await server.lookUpSent(contents, at: path, mark, etag: nil, isHeadTrue: false)
                if there == nil { throw RemoteConditionFailure(present: nil) }
            }
        }
    }

    /// - Throws: ``RemoteConditionFailure`` for a directory that holds anything but hidden names.
    private func requireEmpty(_ path: RemotePath) async throws {
        let members = try await ifExists {
            try await client.members(of: path, in: client.root, .usual, what: path.name ?? "/")
        }
        guard let members, members.contains(where: { !HiddenName.isOne($0.path.name ?? "") }) else { return }
        throw RemoteConditionFailure(present: try await server.propfind(path, isDirectory: true)?.entry)
    }

    /// - Parameters:
    ///   - destination: the path in the same directory that the content is for, where it is not the first one.
    ///   - what: what the message of a refusal names; nil for that path.
    ///   - recheck: as ``recheck(_:at:)`` returns it.
    /// - Returns: the ETag in the answer; nil where it has none.
    @discardableResult
    func put(
        _ body: HTTPBody, at path: RemotePath, for destination: RemotePath? = nil, of what: String? = nil,
        _ conditions: HTTPFields = [:], recheck: (@Sendable () async throws -> Void)? = nil
    ) async throws -> String? {
        var fields = conditions
        fields["Content-Type"] = "application/octet-stream"
        let response = try await client.send(
            "PUT", client.root.url(of: path), fields, body: body, recheck: recheck)
        if !response.head.isSuccess { throw try await refusal(response, at: destination ?? path, of: what) }
        return Self.etag(in: response)
    }

    /// The ETag of the content that a request has sent. Nextcloud and ownCloud have a field of their own, also for what was sent
    /// in chunks.
    static func etag(in response: HTTPResponse) -> String? {
        response.head.fields["ETag"] ?? response.head.fields["OC-ETag"]
    }

    /// - Parameters:
    ///   - size: of the file, in bytes; nil where it is not known, and for a directory.
    ///   - recheck: as ``recheck(_:at:)`` returns it for the new path.
    func move(
        _ path: RemotePath, to newPath: RemotePath, kind: ItemKind, size: Int64?, overwriting: Bool,
        recheck: (@Sendable () async throws -> Void)?
    ) async throws {
        do {
            try await tryToMove(path, to: newPath, kind: kind, size: size, overwriting: overwriting, recheck: recheck)
        } catch let unanswered as UnansweredMove {
            throw unanswered.cause
        }
    }

    /// A move that the server may have made, or may make at any later time, whatever the target is then.
    struct UnansweredMove: Error {
        var cause: any Error
    }

    /// - Parameters:
    ///   - size: of the file, in bytes; nil where it is not known, and for a directory.
    ///   - etag: the tag that the item at the new path must have, as the server writes it.
    ///   - recheck: as ``recheck(_:at:)`` returns it for the new path.
    /// - Throws: ``UnansweredMove`` when no answer of the server itself has come.
    func tryToMove(
        _ path: RemotePath, to newPath: RemotePath, kind: ItemKind, size: Int64?, overwriting: Bool,
        ifTargetHas etag: String? = nil, recheck: (@Sendable () async throws -> Void)?
    ) async throws {
        let isDirectory = kind == .directory
        let target = client.root.url(of: newPath, isDirectory: isDirectory)
        var fields: HTTPFields = ["Overwrite": overwriting ? "T" : "F"]
        if let etag { fields["If"] = "<\(target)> ([\(etag)])" }
        let response: HTTPResponse
        do {
            response = try await client.move(
                client.root.url(of: path, isDirectory: isDirectory), to: target, size: size, fields, recheck: recheck)
        } catch {
            guard OperationLedger.isOutcomeUnknown(after: error) else { throw error }
            throw UnansweredMove(cause: error)
        }
        switch response.status {
        case 201, 204: return
        case 200:
            // Any server may send 200, for example with a login page.
            if try await server.propfind(newPath, isDirectory: isDirectory) != nil,
                try await server.propfind(path, isDirectory: isDirectory) == nil
            {
                return
            }
            throw WebDAVClient.failure(response, of: newPath.name ?? "/", isChange: true)
        case 207:
            throw FileProviderError(
                .malformedResponse, "\(client.host) has moved '\(path.name ?? "/")' only in part")
        // A proxy has stopped waiting. Those from 520 on are Cloudflare's.
        case 502, 504, 520...599:
            throw UnansweredMove(cause: WebDAVClient.failure(response, of: newPath.name ?? "/", isChange: true))
        default: throw try await refusal(response, at: newPath)
        }
    }

    /// Moves an item of the user's from outside the domain to a free path.
    ///
    /// - Parameter size: of the file, in bytes; nil where it is not known, and for a directory.
    func moveIn(_ source: HTTPURL, to path: RemotePath, _ kind: ItemKind, size: Int64?) async throws {
        let target = client.root.url(of: path, isDirectory: kind == .directory)
        let response = try await client.move(
            source, to: target, size: size, ["Overwrite": "F"], recheck: recheck(.absent, at: path))
        if response.head.isSuccess { return }
        // ownCloud's answer to a name that is taken.
        if response.status == 403 { try await server.require(.absent, at: path) }
        throw try await refusal(response, at: path)
    }

    /// The bounds of a deletion member by member: a server may list ever more.
    struct TreeDeletion {
        let top: RemotePath
        var end = ContinuousClock.now + .seconds(600)
        private static let mostLevels = 1000

        /// - Throws: `cannotSynchronize` for a member that is too deep, or too late. A later attempt goes on.
        func check(_ member: RemotePath, on host: String) throws {
            let name = top.name ?? "/"
            guard member.names.count - top.names.count <= Self.mostLevels else {
                let words = "'\(name)' has more than \(Self.mostLevels) levels on \(host), and is not deleted"
                throw FileProviderError(.cannotSynchronize, words)
            }
            guard ContinuousClock.now < end else {
                let words = "\(host) has more in '\(name)' than it deletes in ten minutes: the rest follows"
                throw FileProviderError(.cannotSynchronize, words)
            }
        }
    }

    /// Deletes an item. A missing one is a success.
    ///
    /// - Parameters:
    ///   - recheck: as ``recheck(_:at:)`` returns it.
    ///   - tree: the directory that is deleted with all below it; nil for this item.
    func delete(
        _ path: RemotePath, isDirectory: Bool, _ conditions: HTTPFields,
        recheck: (@Sendable () async throws -> Void)? = nil, in tree: TreeDeletion? = nil
    ) async throws {
        let url = client.root.url(of: path, isDirectory: isDirectory)
        let response: HTTPResponse
        do {
            response = try await client.send("DELETE", url, conditions, isLong: isDirectory, recheck: recheck)
        } catch let failure as RemoteConditionFailure where failure.present == nil {
            return
        }
        switch response.status {
        case 202, 204, 404, 410: return
        case 200:
            if try await server.propfind(path, isDirectory: isDirectory) == nil { return }
        case 412:
            guard let there = try await server.propfind(path) else { return }
            throw RemoteConditionFailure(present: there.entry)
        case 207 where isDirectory:
            // Some of it is still there: the server may not be able to delete a tree that is so deep.
            let tree = tree ?? TreeDeletion(top: path)
            for (member, resource) in try await client.members(
                of: path, in: client.root, .usual, what: path.name ?? "/")
            {
                try tree.check(member, on: client.host)
                try await delete(member, isDirectory: resource.isDirectory, [:], in: tree)
            }
            let rest = try await client.send("DELETE", url, isLong: true)
            if rest.head.isSuccess && rest.status != 207 || rest.status == 404 { return }
            throw WebDAVClient.failure(rest, of: path.name ?? "/", isChange: true)
        default: break
        }
        throw WebDAVClient.failure(response, of: path.name ?? "/", isChange: true)
    }

    /// Creates a directory where nothing is.
    func makeDirectory(at path: RemotePath) async throws -> WebDAVServer.Found {
        // Some servers report success for a directory that exists.
        try await server.require(.absent, at: path)
        let response = try await client.send(
            "MKCOL", client.root.url(of: path, isDirectory: true), recheck: recheck(.absent, at: path))
        guard response.head.isSuccess else {
            if response.status == 405 || response.status == 409 { try await server.require(.absent, at: path) }
            throw WebDAVClient.failure(response, of: path.name ?? "/", isChange: true)
        }
        let made = try await OperationLedger.result { try await server.propfind(path, isDirectory: true) }
        guard let made, made.entry.kind == .directory else {
            throw FileProviderError(.malformedResponse, "\(client.host) has not made '\(path.name ?? "/")'")
        }
        return made
    }

    /// Sets the property with an item's attributes.
    ///
    /// - Returns: whether the server says that it stores them.
    /// - Throws: also `insufficientQuota`.
    func store(_ attributes: StoredAttributes, of resource: DAVResource, at path: RemotePath) async throws -> Bool {
        let response = try await client.send(
            "PROPPATCH", client.root.url(of: path, isDirectory: resource.isCollection),
            ["Content-Type": "application/xml; charset=utf-8"], body: .bytes(attributes.update))
        // All properties are set or none. Each has a status line such as HTTP/1.1 200 OK.
        var states = [String(response.status)]
        if response.status == 207 {
            let lines = String(decoding: response.body, as: UTF8.self).split(separator: "HTTP/1.").dropFirst()
            states = lines.map { line in line.split(separator: " ").dropFirst().first.map { String($0) } ?? "" }
        }
        if states.contains("507") {
            throw FileProviderError(
                .insufficientQuota, "\(client.host) has no room for the attributes of '\(path.name ?? "/")'")
        }
        guard response.status == 207 else { return response.head.isSuccess }
        return !states.isEmpty && states.allSatisfy { $0 == "200" }
    }
}
