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
    ///   - contents: what was sent.
    /// - Returns: the moved file; nil when it is not known to have been moved, also when the server does not answer.
    func run(for mark: SentContents.Mark?, of contents: ContentSource) async -> RemoteEntry? {
        let replacement = server.hiddenFiles.keepWhileMoving(hidden)
        if let replacement, replacement.digest == nil, let digest = await contents.digest() {
            server.hiddenFiles.note(digest, of: hidden)
        }
        do {
            for pause in Self.pauses {
                try await Task.sleep(for: pause)
                if try await server.lookUp(hidden) != nil { continue }
                server.hiddenFiles.remove(hidden)
                guard let mark, let found = try await server.lookUp(path), found.entry.kind == .file,
                    try await server.has(mark, size: contents.size, found, at: path)
                else { return nil }
                return try await server.lostUploads.recognized(found.entry, at: path)
            }
        } catch {
            server.client.transport.logger.debug("a move without an answer cannot be looked for: \(error)")
        }
        return nil
    }
}

extension WebDAVServer {
    /// Makes sure that the server makes no earlier move to a path, or below it, after a change there that is about to begin.
    ///
    /// Deleting the source of the move would not prevent it: some servers remove the target before they look for the source.
    ///
    /// - Parameter contents: what is to be written; nil for any other change. The move of the same content does no harm.
    /// - Returns: what the moves of the same content do that may be made later.
    /// - Throws: `providerDomainTemporarilyUnavailable` as long as the server may make such a move. Nothing was changed then.
    @discardableResult
    func requireNoMove(
        to path: RemotePath, of contents: ContentSource? = nil
    ) async throws -> [HiddenFiles.Replacement] {
        try await OperationLedger.preparing {
            var same: [HiddenFiles.Replacement] = []
            for (hidden, replacement) in hiddenFiles.sources(ofMovesTo: path) {
                guard try await lookUp(hidden) != nil else {
                    hiddenFiles.remove(hidden)
                    continue
                }
                if let contents, let digest = replacement.digest, replacement.names == path.names,
                    replacement.size == contents.size, await contents.digest() == digest
                {
                    same.append(replacement)
                    continue
                }
                throw unansweredMove(to: replacement.names.last)
            }
            return same
        }
    }

    /// The error of a change that waits for an earlier move.
    func unansweredMove(to name: String?) -> FileProviderError {
        FileProviderError(
            .providerDomainTemporarilyUnavailable,
            "\(client.host) may still be writing what was sent of '\(name ?? "/")' before, because it has not answered: the "
                + "next change follows when that is done, or in ten minutes")
    }
}
