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

    func parts(of path: RemotePath, toMoveTo newPath: RemotePath) async throws -> DirectoryParts? {
        try await host.changing {
            let features = try await features()
            if features.movesDirectories { return nil }
            try await check(.absent, newPath)
            return DirectoryParts(try await contents(of: path).map { $0.part(features) })
        }
    }

    /// All that is below a directory; nothing if it is missing.
    private func contents(of path: RemotePath) async throws -> [RcloneItem] {
        try await host.reading { session in
            let features = try await features(session)
            var recursive = options(features)
            recursive["recurse"] = .flag(true)
            let parameters = RcloneCall(fs: source.directory(path), remote: "", opt: recursive)
            let listing = try await ifExists {
                try await CallContext.waiting {
                    try await session.call(
                        "operations/list", parameters, returning: RcloneListing.self, patience: Self.patience)
                }
            }
            return listing?.list ?? []
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

    /// - Parameter others: what stays in the old place.
    private func moveDirectory(
        _ path: RemotePath, to newPath: RemotePath, leaving others: [RcloneItem] = []
    ) async throws {
        let features = try await features()
        var config = Self.always
        if !features.movesDirectories, features.movesFiles {
            // What another client has written in the new place stays, under another name.
            if features.precision != nil { config = [:] }
            config["Suffix"] = .text(" (other version \(String(UInt32.random(in: .min ... .max), radix: 16)))")
            config["SuffixKeepExtension"] = .flag(true)
        }
        let options = config
        let filter = others.isEmpty ? nil : ["ExcludeRule": RcloneValue.list(RcloneRules.excluding(others))]
        try await call(
            "sync/move",
            RcloneCall(
                srcFs: source.directory(path), dstFs: source.directory(newPath), createEmptySrcDirs: true,
                deleteEmptySrcDirs: true, config: options, filter: filter), isLong: true)
        guard !features.movesDirectories else { return }
        // rclone keeps the directory itself.
        do {
            try await call("operations/rmdir", RcloneCall(fs: source.root, remote: RcloneName.text(path)))
        } catch let failure as RcloneFailure where failure.isMissing || failure.text.contains("not empty") {
            // An object store has none without an object; what another client has put there meanwhile stays.
        }
    }

    func finishMove(of parts: DirectoryParts, from path: RemotePath, to newPath: RemotePath) async throws {
        try await host.changing {
            let features = try await features()
            let found = try await contents(of: path)
            let others = found.filter { !parts.contains($0.part(features)) }
            // Another client may have moved the rest, and made another directory in the old place, which may be empty.
            let isRest = others.isEmpty && found.isEmpty == parts.isEmpty
            guard isRest || found.contains(where: { !$0.IsDir && parts.contains($0.part(features)) }) else { return }
            do {
                try await moveDirectory(path, to: newPath, leaving: others)
            } catch let failure as RcloneFailure where failure.isMissing {
                // Nothing was left there.
                guard try await presentIfAny(path) == nil else { throw failure }
            }
            try await keepDirectory(of: path)
        }
    }
}
