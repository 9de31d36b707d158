import FileProvider
import FileProviderPaths
import Foundation
import ProgramProvider
import Synchronization
import Syscalls
import SystemPackage

extension RcloneRemote {
    /// The file that keeps a directory in an object store.
    static let marker = HiddenName.prefix + "directory"
    /// rclone copies and moves in any case. Otherwise it compares times and sizes, and takes other content for the same.
    static let always: [String: RcloneValue] = ["IgnoreTimes": .flag(true)]
    /// The largest content that is sent before its condition is checked.
    private static let largestUnchecked: Int64 = 1 << 20

    /// - Parameter isNew: there is nothing at the target, and rclone need not look.
    private func options(isNew: Bool) async throws -> [String: RcloneValue] {
        var options = Self.always
        if isNew { options["NoCheckDest"] = .flag(true) }
        // The size is compared in any case, and the connection protects what is sent.
        if try await features().hasSlowHashes == true { options["IgnoreChecksum"] = .flag(true) }
        return options
    }

    /// The time for which rclone may copy, move or list without a response; its own timeouts end a broken transfer.
    static let patience: Duration = .seconds(6 * 3600)

    // MARK: - Files

    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        try await host.changing {
            let features = try await features()
            // A large content is not sent in vain.
            if contents.size >= Self.largestUnchecked { try await check(condition, path, isFile: true) }
            return try await files.withCopy(of: contents, countsAsSent: false) { [self] copy in
                if let date = attributes.contentModificationDate {
                    let moment = FileMoment(seconds: date.seconds, nanoseconds: date.nanoseconds)
                    do throws(Errno) { try FilePath(copy).setModificationTime(to: moment) } catch {
                        throw FileProviderError.posix(error)
                    }
                }
                if features.isBucket || hasSeenIdentifiers || !features.movesFiles {
                    try await check(condition, path, isFile: features.isBucket)
                    try await upload(contents, in: copy, to: path, isNew: condition == .absent)
                    return try await OperationLedger.result {
                        try await present(copy, sentTo: path, size: contents.size)
                    }
                }
                return try await replace(path, by: copy, of: contents, if: condition)
            }
        }
    }

    /// Uploads under a hidden name and moves the complete file to its place.
    private func replace(
        _ path: RemotePath, by copy: String, of contents: ContentSource, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        let hidden = path.parent.appending(HiddenName.make())
        uploads.withLock { _ = $0.insert(hidden) }
        var isReplacing = false
        do {
            try await upload(contents, in: copy, to: hidden, isNew: true)
            async let stored = stored(hidden, size: contents.size)
            try await check(condition, path)
            var staged = try await stored
            // A cancelled caller does not leave the name without a file: rclone deletes the old one first.
            isReplacing = condition != .absent
            try await Task {
                do {
                    try await moveFile(hidden, to: path, isNew: condition == .absent)
                } catch {
                    guard condition != .absent, try await finishReplacing(path, by: hidden) else { throw error }
                }
            }.value
            uploads.withLock { _ = $0.remove(hidden) }
            staged.name = path.name ?? ""
            // Another client may have written since: then the next listing shows it.
            let now = try await presentIfAny(path, isFile: true)
            return now.map { $0.tag == staged.tag } == true ? now ?? staged : staged
        } catch {
            uploads.withLock { _ = $0.remove(hidden) }
            // Also when the caller was cancelled.
            Task { [isReplacing] in
                // While there is no other file, or that is not known, it stays as a leftover.
                if isReplacing, try await presentIfAny(path, isFile: true) == nil { return }
                try await call(
                    "operations/deletefile", RcloneCall(fs: source.root, remote: RcloneName.text(hidden)))
            }
            // Another client may have removed the hidden file as a leftover: that does not say that the directory is missing.
            if let failure = error as? RcloneFailure, failure.isMissing {
                throw FileProviderError(.providerDomainTemporarilyUnavailable, "rclone: \(failure.text)")
            }
            throw error
        }
    }

    /// Moves a complete upload to its place, if an interrupted move has deleted the file there and done no more.
    ///
    /// - Returns: whether it has.
    func finishReplacing(_ path: RemotePath, by hidden: RemotePath) async throws -> Bool {
        guard try await presentIfAny(path, isFile: true) == nil,
            try await presentIfAny(hidden, isFile: true) != nil
        else { return false }
        try await moveFile(hidden, to: path, isNew: true)
        return true
    }

    /// - Parameter isNew: there is nothing at the new path, and rclone need not look.
    func moveFile(
        _ path: RemotePath, to newPath: RemotePath, isNew: Bool = false
    ) async throws {
        try await call(
            "operations/movefile",
            RcloneCall(
                srcFs: source.root, srcRemote: RcloneName.text(path), dstFs: source.root,
                dstRemote: RcloneName.text(newPath), config: try await options(isNew: isNew)), isLong: true)
    }

    /// - Parameters:
    ///   - copy: the file with the content.
    ///   - isNew: there is nothing at the path, and rclone need not look.
    private func upload(
        _ contents: ContentSource, in copy: String, to path: RemotePath, isNew: Bool
    ) async throws {
        let group = UUID().uuidString
        try await reporting(contents, sentIn: group) {
            try await copyFile(copy, to: path, isNew: isNew, group: group)
        }
    }

    /// - Parameters:
    ///   - isNew: there is nothing at the path, and rclone need not look.
    ///   - group: as in ``RcloneCall/statsGroup``.
    private func copyFile(
        _ copy: String, to path: RemotePath, isNew: Bool = false, group: String? = nil
    ) async throws {
        try await call(
            "operations/copyfile",
            RcloneCall(
                srcFs: files.directory.string, srcRemote: FilePath(copy).lastComponent?.string ?? "",
                dstFs: source.root, dstRemote: RcloneName.text(path), config: try await options(isNew: isNew),
                statsGroup: group), isLong: true)
    }

    /// A file that was just uploaded, or another one of its size.
    func stored(_ path: RemotePath, size: Int64) async throws -> RemoteEntry {
        guard let entry = try await presentIfAny(path, isFile: true), entry.size == size else {
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable, "what arrived of '\(path.name ?? "")' is not what was sent")
        }
        return entry
    }

    /// - Parameter isFile: only a file of the name counts, which is cheaper to find.
    /// - Throws: ``RemoteConditionFailure`` when the condition does not hold.
    func check(
        _ condition: RemoteCondition, _ path: RemotePath, isFile: Bool = false
    ) async throws {
        switch condition {
        case .always, .empty: return
        case .absent:
            // Side by side; where there is a file, the answer about a directory may be an error.
            async let isDirectory = isFile ? false : isDirectory(path)
            if let there = try await presentIfAny(path, isFile: true) { throw RemoteConditionFailure(present: there) }
            if try await isDirectory, let there = try await presentIfAny(path) {
                throw RemoteConditionFailure(present: there)
            }
        case .unchanged(let tag):
            let there = try await presentIfAny(path, isFile: true)
            guard let there, there.kind == .file, there.tag == tag else {
                throw RemoteConditionFailure(present: there)
            }
        }
    }

    /// - Parameter isLong: rclone sends, copies or removes much. It ends broken transfers itself; a process that has stopped answering is
    ///   ended by its session.
    func call(_ method: String, _ parameters: RcloneCall, isLong: Bool = false) async throws {
        let session = try await host.running()
        func send() async throws {
            _ = try await session.call(method, parameters, returning: RcloneNothing.self, patience: Self.patience)
        }
        if isLong { try await CallContext.waiting { try await send() } } else { try await send() }
    }

    // MARK: - Directories and names

    func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        try await host.changing {
            let features = try await features()
            try await check(.absent, path)
            if features.hasEmptyDirectories {
                try await call(
                    "operations/mkdir", RcloneCall(fs: source.root, remote: RcloneName.text(path)))
            } else {
                try await keepDirectory(path)
            }
            return try await OperationLedger.result { try await entry(at: path) }
        }
    }

    /// Makes the file that keeps an empty directory.
    private func keepDirectory(_ path: RemotePath) async throws {
        try await files.with { [self] empty, _ in
            try await copyFile(empty, to: path.appending(Self.marker))
        }
    }

    /// Keeps a directory in an object store from vanishing with its last file.
    func keepDirectory(of path: RemotePath) async throws {
        let parent = path.parent
        guard try await !features().hasEmptyDirectories, !parent.names.isEmpty,
            try await presentIfAny(parent) == nil
        else { return }
        try await keepDirectory(parent)
    }

    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        try await host.changing {
            var notStored: ItemFields = []
            if attributes.permissions != nil { notStored.insert(.permissions) }
            if attributes.extendedAttributes != nil { notStored.insert(.extendedAttributes) }
            if let date = attributes.contentModificationDate {
                let features = try await features()
                var isStored = kind == .file && features.precision != nil
                if isStored {
                    do { try await touch(path, date) } catch let failure as RcloneFailure where failure.isOfFixedDates {
                        // The backend takes a date with content only.
                        isStored = false
                    }
                }
                if !isStored { notStored.insert(.contentModificationDate) }
            }
            return (try await entry(at: path), notStored)
        }
    }

    /// rclone's remote control sets no times, but runs a command that does.
    private func touch(_ path: RemotePath, _ date: FileTimestamp) async throws {
        let result = try await host.running().call(
            "core/command",
            RcloneCall(
                opt: ["timestamp": .text(Self.text(of: date))], command: "touch",
                arg: ["--no-create", source.directory(path)]), returning: RcloneCommandResult.self)
        guard result.error == true else { return }
        throw RcloneFailure(
            status: 500, text: result.result ?? "touch fails", names: path.names.map(RcloneName.encode))
    }

    /// A time in UTC as `rclone touch` takes it.
    static func text(of date: FileTimestamp) -> String {
        let whole = Date(timeIntervalSince1970: TimeInterval(date.seconds)).formatted(.iso8601)
        return whole.prefix { $0 != "Z" } + "." + date.nanoseconds.padded(to: 9)
    }

    // MARK: - Deleting

    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        if uploads.withLock({ $0.contains(path) }) { return }
        try await host.changing {
            do {
                if kind == .directory {
                    try await deleteDirectory(path, if: condition)
                } else {
                    if case .unchanged(let tag) = condition {
                        guard let there = try await presentIfAny(path, isFile: true) else { return }
                        guard there.tag == tag else { throw RemoteConditionFailure(present: there) }
                    } else {
                        try await check(condition, path)
                    }
                    try await call(
                        "operations/deletefile", RcloneCall(fs: source.root, remote: RcloneName.text(path)))
                }
            } catch let failure as RcloneFailure where failure.isMissing {
                return
            }
            try await keepDirectory(of: path)
        }
    }

    private func deleteDirectory(
        _ path: RemotePath, if condition: RemoteCondition
    ) async throws {
        let parameters = RcloneCall(fs: source.root, remote: RcloneName.text(path))
        if condition == .always { return try await call("operations/purge", parameters, isLong: true) }
        var hidden: [RemoteEntry] = []
        do {
            try await visitListing(of: path) { part in
                hidden += part.entries
                guard part.entries.allSatisfy({ HiddenName.isOne($0.name) }) else {
                    throw RemoteConditionFailure(present: try await entry(at: path))
                }
                return true
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return
        }
        for entry in hidden {
            let child = RcloneName.text(path.appending(entry.name))
            try await call(
                entry.kind == .directory ? "operations/purge" : "operations/deletefile",
                RcloneCall(fs: source.root, remote: child), isLong: true)
        }
        do {
            try await call("operations/rmdir", parameters)
        } catch let failure as RcloneFailure where !failure.isMissing {
            // rclone does not list everything: symbolic links of a folder, for example.
            guard failure.text.contains("not empty") else { throw failure }
            throw RemoteConditionFailure(present: try await entry(at: path))
        }
    }
}
