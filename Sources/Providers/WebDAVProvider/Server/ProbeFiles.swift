import FileProvider
import FileProviderPaths
import HTTPTransport

/// The files of one capability probe: their names begin with one hidden name.
struct ProbeFiles: Sendable {
    /// The path that their paths begin with.
    let prefix: RemotePath
    let plain: [RemotePath]
    let directory: RemotePath
    let odd: [OddName]

    /// The files that test one kind of name.
    struct OddName: Sendable {
        let part: ServerCapabilities.OddPart
        let source: RemotePath
        /// The name that the source is moved to.
        let moved: RemotePath
        /// The name that is used in a PUT.
        let sent: RemotePath
    }

    init(_ prefix: RemotePath) {
        let (parent, name) = (prefix.parent, prefix.name ?? HiddenName.prefix)
        self.prefix = prefix
        plain = (1...8).map { parent.appending("\(name)-\($0)") }
        directory = parent.appending("\(name)-9")
        odd = ServerCapabilities.OddPart.allCases.enumerated().map { number, part in
            OddName(
                part: part, source: parent.appending("\(name)-from-\(number)"),
                moved: parent.appending("\(name)-a\(part.example)a"),
                sent: parent.appending("\(name)-b\(part.example)b"))
        }
    }

    /// The files that the server lists, also under names that it has changed.
    func listed(by client: WebDAVClient) async throws -> Set<RemotePath> {
        let (parent, name) = (prefix.parent, prefix.name ?? HiddenName.prefix)
        var attempt = 1
        while true {
            do {
                let members = try await client.members(
                    of: parent, in: client.root, .usual, what: parent.name ?? "/",
                    where: { $0.name?.utf8.starts(with: name.utf8) == true })
                return Set(members.map(\.path))
            } catch let error as FileProviderError
                where [.malformedResponse, .providerDomainTemporarilyUnavailable].contains(error.code) && attempt < 4
            {
                // Some servers cannot list a directory while a file in it disappears, of another client or of ours: the
                // listing is cut, or fails with status 500 (WsgiDAV).
                try await Task.sleep(for: .milliseconds(100 * attempt))
                attempt += 1
            }
        }
    }

    /// Removes all files, also those to which the server has given other names. Files that no listing shows are removed by
    /// their names.
    ///
    /// - Returns: whether the server has answered every request.
    func removeAll(by client: WebDAVClient) async -> Bool {
        var listed: Set<RemotePath>?
        do {
            listed = try await self.listed(by: client)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            // The parent directory was deleted.
            return true
        } catch {}
        let paths = (listed ?? []).union(plain + odd.flatMap { [$0.source, $0.moved, $0.sent] })
        let isListed = listed != nil
        return await withTaskGroup(of: Bool.self) { group in
            for path in paths { group.addTask { await client.deleteHidden(path) != nil } }
            return await group.reduce(isListed) { $0 && $1 }
        }
    }
}

extension WebDAVClient {
    /// - Returns: the status of the response; nil when the request has to be repeated.
    func deleteHidden(_ path: RemotePath, isDirectory: Bool = false) async -> Int? {
        let response = try? await send("DELETE", root.url(of: path, isDirectory: isDirectory))
        guard let status = response?.status, status < 500, status != 423 else { return nil }
        return status
    }
}
