import FileProvider
import FileProviderPaths

/// Moving files and directories. Without `DirMove` rclone moves a directory file by file: one that is interrupted is finished before
/// anything is said of it, because the files in the old place would look like those that are left, and the others like new ones.
extension RcloneRemote {
    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        let move = RcloneMove(from: path, to: newPath)
        let wasBegun = kind == .directory && moves.contains(move)
        for path in [path, newPath] { try await finishMoves(over: path, .tree, for: nil) }
        // Then what is in the new place is a part of the directory.
        let isContinued = wasBegun && moves.contains(move)
        return try await host.changing {
            if wasBegun, !isContinued, try await isNothing(at: path) { return try await moved(path, to: newPath) }
            if !isContinued { try await check(.absent, newPath) }
            if kind != .directory {
                try await moveFile(path, to: newPath)
            } else if try await features().movesDirectories {
                try await moveDirectory(move)
            } else {
                try await moves.make(move) {
                    do { try await moveDirectory(move) } catch let failure as RcloneFailure {
                        if !isContinued, (try? await isNothing(at: newPath)) == true { moves.end(move) }
                        throw failure
                    }
                }
            }
            return try await moved(path, to: newPath)
        }
    }

    private func moved(_ path: RemotePath, to newPath: RemotePath) async throws -> RemoteEntry {
        try await OperationLedger.result {
            try await keepDirectory(of: path)
            return try await entry(at: newPath)
        }
    }

    private func isNothing(at path: RemotePath) async throws -> Bool { try await presentIfAny(path) == nil }

    private func moveDirectory(_ move: RcloneMove) async throws {
        let features = try await features()
        var config = Self.always
        if !features.movesDirectories, features.movesFiles {
            // What another client has written in the new place stays, under another name.
            if features.precision != nil { config = [:] }
            config["Suffix"] = .text(" (other version \(String(UInt32.random(in: .min ... .max), radix: 16)))")
            config["SuffixKeepExtension"] = .flag(true)
        }
        let options = config
        // rclone tells of no progress, and ends broken transfers itself.
        try await CallContext.waiting {
            try await call(
                "sync/move",
                RcloneCall(
                    srcFs: source.directory(move.from), dstFs: source.directory(move.to), createEmptySrcDirs: true,
                    deleteEmptySrcDirs: true, config: options))
        }
        guard !features.movesDirectories else { return }
        // rclone keeps the directory itself.
        do {
            try await call("operations/rmdir", RcloneCall(fs: source.root, remote: RcloneName.text(move.from)))
        } catch let failure as RcloneFailure where failure.isMissing || failure.text.contains("not empty") {
            // An object store has none without an object; what another client has put there meanwhile stays.
        }
    }

    /// Finishes the interrupted renames of directories on a path.
    ///
    /// - Parameters:
    ///   - extent: of the call that needs them.
    ///   - limit: for how long the call waits; nil for until the end.
    /// - Throws: `providerDomainTemporarilyUnavailable` while they are being finished.
    func finishMoves(
        over path: RemotePath, _ extent: RcloneMove.Extent = .item, for limit: Duration? = .seconds(5)
    ) async throws {
        for move in moves.interrupted where move.concerns(path, extent) {
            try await moves.finish(move, waiting: limit) { [self] in try await finish(move) }
        }
    }

    private func finish(_ move: RcloneMove) async throws {
        do {
            try await host.changing {
                guard try await presentIfAny(move.from)?.kind == .directory else { return }
                do { try await moveDirectory(move) } catch let failure as RcloneFailure where failure.isMissing {
                    // Nothing was left there.
                    guard try await isNothing(at: move.from) else { throw failure }
                }
                try await keepDirectory(of: move.from)
            }
        } catch let error as FileProviderError {
            if [.serverUnreachable, .notAuthenticated, .timedOut, .userCancelled].contains(error.code) { throw error }
            moves.noteStuck(move)
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable,
                "the interrupted renaming of '\(move.from.name ?? "")' cannot be finished: \(error.message)")
        }
    }
}
