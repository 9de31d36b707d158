import FileProvider
import FileProviderPaths
import HTTPTransport
import Logging

/// Looks for the file of a move without an answer. A proxy may stop waiting while the server still moves.
struct MoveSearch: Sendable {
    let server: WebDAVServer
    /// The source of the move, and its target.
    let hidden: RemotePath
    let path: RemotePath

    /// Before each look; sixteen seconds in all.
    private static let pauses: [Duration] = [
        .milliseconds(100), .milliseconds(400), .seconds(1), .milliseconds(1500), .seconds(2), .seconds(3), .seconds(4),
        .seconds(4),
    ]

    /// Looks for some seconds. A hidden file that is still there then is kept as long as the move may be going on.
    ///
    /// - Parameters:
    ///   - mark: what the sent content is recognized by.
    ///   - size: of the sent content.
    /// - Returns: the moved file; nil when it is not known to have been moved, also when the server does not answer.
    func run(for mark: SentContents.Mark?, size: Int64) async -> RemoteEntry? {
        server.hiddenFiles.keepWhileMoving(hidden)
        do {
            for pause in Self.pauses {
                try await Task.sleep(for: pause)
                if try await server.lookUp(hidden) != nil { continue }
                server.hiddenFiles.remove(hidden)
                guard let mark, let found = try await server.lookUp(path), found.entry.kind == .file,
                    try await isSent(found, mark, size)
                else { return nil }
                return try await server.lostUploads.recognized(found.entry, at: path)
            }
        } catch {
            server.client.transport.logger.debug("a move without an answer cannot be looked for: \(error)")
        }
        return nil
    }

    private func isSent(_ found: WebDAVServer.Found, _ mark: SentContents.Mark, _ size: Int64) async throws -> Bool {
        switch mark {
        case .tag(let tag): return found.entry.tag == tag
        case .seconds(let seconds): return found.entry.size == size && found.resource.modifiedAt == seconds
        case .digest:
            guard found.entry.size == size else { return false }
            guard let bytes = try await server.lostUploads.bytes(at: path) else { return false }
            return LostUploads.digest(of: bytes) == mark
        }
    }
}
