import FileProvider
import Syscalls
import SystemPackage

/// Applies attributes of items to files.
enum FolderAttributes {
    /// Sets the given fields of an item on an open file.
    ///
    /// - Parameter directories: sets the permissions if the file is a directory.
    /// - Returns: the fields that the file cannot store.
    static func apply(
        _ fields: ItemFields, of item: FileProviderItem, to file: FileDescriptor,
        _ directories: ReadOnlyDirectories? = nil
    ) throws(Errno) -> ItemFields {
        var status = try FileStatus(of: file)
        var pending = notKept(fields, of: item, status)
        // The owner first, because it may clear mode bits; then the mode, which may forbid changes; the time last.
        if fields.contains(.ownership), try !setOwner(of: file, item, status) { pending.insert(.ownership) }
        if fields.contains(.extendedAttributes), let wanted = item.extendedAttributes,
            try !setAttributes(of: file, wanted, status)
        {
            pending.insert(.extendedAttributes)
        }
        let modes = fields.intersection([.permissions, .fileSystemFlags])
        status = try FileStatus(of: file)
        let permissions = directories?.permissions(of: status) ?? status.permissions
        let mode = item.permissions.map { withoutForeignSetID($0, item.owner, item.group, status) }
        if mode != item.permissions { pending.formUnion(modes) }
        if !modes.isEmpty, status.kind != .symbolicLink, let mode, mode != permissions {
            do throws(Errno) {
                if let directories {
                    try directories.setPermissions(of: file, to: mode & 0o7777)
                } else {
                    try file.setPermissions(mode & 0o7777)
                    // Some file systems have no modes, and say nothing.
                    if try FileStatus(of: file).permissions != mode & 0o7777 { pending.formUnion(modes) }
                }
            } catch {
                guard error == .notPermitted || error == .notSupported else { throw error }
                pending.formUnion(modes)
            }
        }
        if fields.contains(.contentModificationDate), let date = item.contentModificationDate,
            date != FileTimestamp(status.modified)
        {
            do throws(Errno) {
                try file.setModified(FileMoment(seconds: date.seconds, nanoseconds: date.nanoseconds))
            } catch {
                // The date of a file is its owner's to set.
                guard error == .notPermitted || error == .permissionDenied else { throw error }
                pending.insert(.contentModificationDate)
            }
        }
        return pending
    }

    /// Copies the attributes that an item does not define from the old file, as far as this process may.
    ///
    /// - Parameter fields: the fields that the item defines.
    static func carryOver(
        from old: FileDescriptor, _ status: FileStatus, to file: FileDescriptor, except fields: ItemFields,
        of item: FileProviderItem
    ) throws(Errno) {
        let now = try FileStatus(of: file)
        if now.owner != status.owner || now.group != status.group {
            if (try? file.setOwner(status.owner, group: status.group)) == nil {
                try? file.setOwner(now.owner, group: status.group)
            }
        }
        let saysAttributes = fields.contains(.extendedAttributes) && item.extendedAttributes != nil
        for (name, value) in old.extendedAttributes() {
            // These attributes belong to the old bytes.
            if ["security.capability", "security.ima", "security.evm"].contains(name) { continue }
            if saysAttributes, ExtendedAttributeName.isKept(name) { continue }
            try? file.setExtendedAttribute(name, to: value)
        }
        let mode = withoutForeignSetID(status.permissions, status.owner, status.group, try FileStatus(of: file))
        try? file.setPermissions(mode)
    }

    /// A set-ID file must not run as another user or group than those that it has here.
    ///
    /// - Parameter status: of the file that is to get the mode.
    static func withoutForeignSetID(
        _ mode: UInt16, _ owner: UInt32?, _ group: UInt32?, _ status: FileStatus
    ) -> UInt16 {
        guard status.kind == .regular else { return mode }
        var mode = mode
        if let owner, owner != status.owner { mode &= ~0o4000 }
        if let group, group != status.group { mode &= ~0o2000 }
        return mode
    }

    private static func notKept(_ fields: ItemFields, of item: FileProviderItem, _ status: FileStatus) -> ItemFields {
        var pending: ItemFields = []
        if fields.contains(.lastUsedDate), item.lastUsedDate != nil { pending.insert(.lastUsedDate) }
        if fields.contains(.tagData), item.tagData != nil { pending.insert(.tagData) }
        if fields.contains(.favoriteRank), item.favoriteRank != nil { pending.insert(.favoriteRank) }
        if fields.contains(.creationDate), let date = item.creationDate, date != status.birth.map(FileTimestamp.init) {
            pending.insert(.creationDate)
        }
        return pending
    }

    private static func setOwner(
        of file: FileDescriptor, _ item: FileProviderItem, _ status: FileStatus
    ) throws(Errno) -> Bool {
        let owner = item.owner ?? status.owner
        let group = item.group ?? status.group
        if owner == status.owner, group == status.group { return true }
        // Others than root cannot give a file away, but to a group that they are in.
        let newOwner = Machine.userIdentifier == 0 ? owner : status.owner
        if newOwner == status.owner, group == status.group { return false }
        do throws(Errno) {
            try file.setOwner(newOwner, group: group)
        } catch {
            guard [.notPermitted, .notSupported, .invalidArgument].contains(error) else { throw error }
            return false
        }
        return newOwner == owner
    }

    private static func isFull(_ file: FileDescriptor) -> Bool {
        let statistics = try? FileSystemStatistics(of: FilePath("/proc/self/fd/\(file.rawValue)"))
        return statistics.map(isFull) ?? false
    }

    /// Whether a file system may lack room for an attribute, whose value has up to 64 KiB. A tmpfs takes one of its inodes for each KiB,
    /// and XFS may need many more blocks than the value has.
    static func isFull(_ statistics: FileSystemStatistics) -> Bool {
        statistics.bytes(in: statistics.availableBlocks) < 1 << 20 || statistics.files > 0 && statistics.freeFiles < 128
    }

    private static func setAttributes(
        of file: FileDescriptor, _ wanted: [String: [UInt8]], _ status: FileStatus
    ) throws(Errno) -> Bool {
        if status.kind == .symbolicLink { return wanted.isEmpty }
        var old: [String: [UInt8]] = [:]
        for (name, value) in file.extendedAttributes() where ExtendedAttributeName.isKept(name) {
            old[ExtendedAttributeName.key(of: name)] = value
        }
        var isDone = true
        var isOpened = false
        func change(_ body: () throws(Errno) -> Void) throws(Errno) {
            do throws(Errno) {
                try body()
            } catch {
                switch error {
                case .permissionDenied where !isOpened && status.permissions & 0o200 == 0:
                    // A read-only file rejects attributes from its owner, too.
                    isOpened = true
                    try file.setPermissions(status.permissions | 0o200)
                    return try change(body)
                // It is sent again, and stored when there is room.
                case .noSpace where isFull(file): throw error
                // ext4 has no room for a large value beside a file, however much there is elsewhere.
                case .notSupported, .noSpace, .argListTooLong, .outOfRange, .notPermitted, .invalidArgument:
                    isDone = false
                default: throw error
                }
            }
        }
        for (key, value) in wanted where old[key] != value {
            try change { () throws(Errno) in
                try file.setExtendedAttribute(ExtendedAttributeName.fullName(of: key), to: value)
            }
        }
        for key in old.keys where wanted[key] == nil {
            try change { () throws(Errno) in
                try file.removeExtendedAttribute(ExtendedAttributeName.fullName(of: key))
            }
        }
        if isOpened { try file.setPermissions(status.permissions) }
        return isDone
    }
}
