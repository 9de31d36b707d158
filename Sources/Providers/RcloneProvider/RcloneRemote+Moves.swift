import FileProvider
import FileProviderPaths

/// Moving files and directories. Without `DirMove` rclone moves a directory file by file.
extension RcloneRemote: PartwiseRemote {
    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        try await host.changing {
            try await check(.absent, newPath)
            if kind == .directory {
                try await moveWholeDirectory(path, to: newPath)
            } else {
                try await moveFile(path, to: newPath)
            }
            return try await OperationLedger.result {
                try await keepDirectory(of: path)
                return try await entry(at: newPath)
            }
        }
    }

    func parts(of path: RemotePath, toMoveTo newPath: RemotePath) async throws -> [UInt64]? {
        try await host.changing {
            if try await features().movesDirectories { return nil }
            try await check(.absent, newPath)
            return []
        }
    }

    private func moveWholeDirectory(_ path: RemotePath, to newPath: RemotePath) async throws {
        do {
            try await host.changing { try await moveDirectory(path, to: newPath) }
        } catch let error as FileProviderError where !OperationLedger.isOutcomeUnknown(after: error) {
            if let features = try? await features(), features.movesDirectories { throw error }
            var mayBeBegun = true
            do { mayBeBegun = try await presentIfAny(newPath) != nil } catch {}
            guard mayBeBegun else { throw error }
            // Whatever the reason, a part of it may be in the new place.
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable,
                "the renaming of '\(path.name ?? "")' is not finished: \(error.message)")
        }
    }

    private func moveDirectory(_ path: RemotePath, to newPath: RemotePath) async throws {
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
                    srcFs: source.directory(path), dstFs: source.directory(newPath), createEmptySrcDirs: true,
                    deleteEmptySrcDirs: true, config: options))
        }
        guard !features.movesDirectories else { return }
        // rclone keeps the directory itself.
        do {
            try await call("operations/rmdir", RcloneCall(fs: source.root, remote: RcloneName.text(path)))
        } catch let failure as RcloneFailure where failure.isMissing || failure.text.contains("not empty") {
            // An object store has none without an object; what another client has put there meanwhile stays.
        }
    }

    func finishMove(of parts: [UInt64], from path: RemotePath, to newPath: RemotePath) async throws {
        try await host.changing {
            do { try await moveDirectory(path, to: newPath) } catch let failure as RcloneFailure where failure.isMissing
            {
                // Nothing was left there.
                guard try await presentIfAny(path) == nil else { throw failure }
            }
            try await keepDirectory(of: path)
        }
    }
}
