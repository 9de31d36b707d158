import FileProvider
import Syscalls
import SystemPackage

extension Keeping {
    /// Gives the kept files the attributes that their items had, but for those that were changed since: they are the user's. When it
    /// is cut short, the next start goes on, also within a file.
    package static func restoreAttributes(in folder: FilePath) throws {
        guard let reader = try ManifestReader(in: folder) else { return }
        // The end of the manifest was written after all that it describes, and by the same clock.
        let end = FileTimestamp(try FileStatus(at: folder.appending(Manifest.fileName)).modified)
        let isOfFolder = reader.header.source.utf8.starts(with: "/".utf8)
        var count = 0
        try reader.read(
            items: { item in
                guard let path = Self.place(item.path, in: folder) else { return }
                if item.kind == InodeKind.directory.rawValue {
                    count += 1
                } else if item.isHere {
                    try? restoreAttributes(of: path, item, keptUntil: end, isOfFolder: isOfFolder)
                }
            }, removed: { _ in })
        // The time of a directory changes with what is in it: the last ones first, as many at once as memory has room for.
        while count > 0 {
            let part = max(0, count - 50_000)..<count
            var directories: [(FilePath, Manifest.Item)] = []
            var index = 0
            try ManifestReader(in: folder)?.read(
                items: { item in
                    guard let path = Self.place(item.path, in: folder), item.kind == InodeKind.directory.rawValue
                    else { return }
                    if part.contains(index) { directories.append((path, item)) }
                    index += 1
                }, removed: { _ in })
            for (path, item) in directories.reversed() {
                try? restoreAttributes(of: path, item, keptUntil: end, isOfFolder: isOfFolder)
            }
            count = part.lowerBound
        }
    }

    /// - Parameters:
    ///   - end: when all had been kept. What was changed later, also by an earlier call of this that was not cut short at it, stays
    ///     as it is.
    ///   - isOfFolder: whether the source is a folder of this machine. No other source can say what runs here with the rights of
    ///     a file's owner: its set-ID bits and file capabilities are left out.
    private static func restoreAttributes(
        of path: FilePath, _ item: Manifest.Item, keptUntil end: FileTimestamp, isOfFolder: Bool
    ) throws {
        let kind = InodeKind(rawValue: item.kind)
        let found = try FileStatus(at: path)
        // Its change time is ours.
        let isUnfinished = item.isBeingRestored(found)
        guard isUnfinished || FileTimestamp(found.changed) <= end else { return }
        if kind == .symbolicLink {
            return try path.setModificationTime(to: FileMoment(item.modified))
        }
        let file = try FileDescriptor.open(path, .readOnly, options: [.noFollow, .closeOnExec, .nonBlocking])
        defer { try? file.close() }
        let before = try FileStatus(of: file)
        if kind == .file, !item.isAsKept(before) { return }
        // The mark of a file where this is cut short.
        try? file.setModified(item.beingRestored)
        // After that, what has neither the value of before nor the wanted one was changed by the user.
        let hasOurOwner =
            !isUnfinished || before.owner == Machine.userIdentifier && before.group == Machine.groupIdentifier
        if hasOurOwner, let owner = item.owner, let group = item.group { try? file.setOwner(owner, group: group) }
        // The owner can be another than in the source, because only root can give a file away.
        let status = try FileStatus(of: file)
        let present = isUnfinished ? file.extendedAttributes() : [:]
        // After the owner, because changing that takes capabilities away.
        for (key, value) in item.attributes ?? [:] {
            let name = ExtendedAttributeName.fullName(of: key)
            if name == "security.capability", !isOfFolder || item.owner != status.owner || item.group != status.group {
                continue
            }
            if present[name] == nil { try? file.setExtendedAttribute(name, to: [UInt8](value)) }
        }
        var permissions = item.permissions ?? (kind == .directory ? 0o755 : 0o644)
        if kind == .file {
            if !isOfFolder || item.owner != status.owner { permissions &= ~0o4000 }
            if !isOfFolder || item.group != status.group { permissions &= ~0o2000 }
        }
        // An access control list may have set all but the upper bits.
        let ours = [kind == .directory ? 0o700 : 0o600, permissions & 0o777]
        if !isUnfinished || ours.contains(before.permissions) { try? file.setPermissions(permissions) }
        try file.setModified(FileMoment(item.modified))
    }
}

extension Manifest.Item {
    /// The date of a file while its attributes are restored: no file has it before or after that. A file system that keeps dates less
    /// exactly has no such files: what was cut short there stays as it is.
    var beingRestored: FileMoment { FileMoment(modified.saturatingAdd(1)) }

    fileprivate func isBeingRestored(_ status: FileStatus) -> Bool {
        status.modified == beingRestored && beingRestored != FileMoment(modified)
            && keptModified.map { status.modified != FileMoment($0) } != false
    }
}
