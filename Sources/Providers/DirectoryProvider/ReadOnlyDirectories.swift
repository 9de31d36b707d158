import Synchronization
import Syscalls
import SystemPackage

/// Lets this user write to and search directories that the user owns and whose modes deny it, while a change is stored in them.
///
/// A process can write to a file in a read-only directory, or take the rights from a directory after it has made the files. The
/// source must accept both, although the provider replaces files by renaming, and stores a directory's mode before its files. If
/// the daemon is killed before it restores the mode, the owner keeps the rights.
final class ReadOnlyDirectories: Sendable {
    private struct Key: Hashable {
        var device: UInt64
        var inode: UInt64

        init(_ status: FileStatus) { (device, inode) = (status.device, status.inode) }
    }

    private struct Entry {
        /// How many changes are being stored in it.
        var changes = 0
        var permissions: UInt16
    }

    private let entries = Mutex<[Key: Entry]>([:])
    /// The owner's rights to write and to search.
    private static let rights: UInt16 = 0o300

    /// Whether this process may write regardless of modes.
    let isRoot: Bool

    init(isRoot: Bool = Machine.userIdentifier == 0) {
        self.isRoot = isRoot
    }

    /// Runs a body that makes, renames or removes names in directories.
    func writing<Value>(to directories: [FileDescriptor], _ body: () throws -> Value) throws -> Value {
        guard !isRoot else { return try body() }
        var changed: [(Key, FileDescriptor)] = []
        defer { for (key, directory) in changed { end(key, directory) } }
        for directory in directories {
            if let key = try begin(directory) { changed.append((key, directory)) }
        }
        return try body()
    }

    /// Runs a body that needs all directories on some paths. A directory can be opened only when this user may search the one
    /// above it.
    ///
    /// - Parameter isGranting: whether this user gets the rights that are missing. Otherwise none is taken away by another change
    ///   before the body ends.
    func writing<Value>(
        below root: FileDescriptor, along paths: [[String]], isGranting: Bool = true, _ body: () throws -> Value
    ) throws -> Value {
        guard !isRoot else { return try body() }
        var opened: [(key: Key?, directory: FileDescriptor)] = []
        defer {
            for (key, directory) in opened.reversed() {
                if let key { end(key, directory) }
                try? directory.close()
            }
        }
        for path in paths {
            var current = try root.duplicateCloseOnExec()
            opened.append((nil, current))
            opened[opened.count - 1].key = try begin(current, isGranting: isGranting)
            for name in path {
                guard let next = try? current.openDirectory(named: name) else { break }
                opened.append((nil, next))
                opened[opened.count - 1].key = try begin(next, isGranting: isGranting)
                current = next
            }
        }
        return try body()
    }

    /// The permissions that a file has when no change is being stored in it.
    func permissions(of status: FileStatus) -> UInt16 {
        guard status.kind == .directory else { return status.permissions }
        return entries.withLock { entries in
            guard let entry = entries[Key(status)],
                status.permissions == entry.permissions | Self.rights
            else { return status.permissions }
            return entry.permissions
        }
    }

    /// Sets the permissions of a directory. While changes are stored in it, the owner may write nevertheless.
    func setPermissions(of directory: FileDescriptor, to permissions: UInt16) throws(Errno) {
        try entries.withLock { entries throws(Errno) in
            let key = Key(try FileStatus(of: directory))
            guard entries[key] != nil else { return try directory.setPermissions(permissions) }
            try directory.setPermissions(permissions | Self.rights)
            entries[key]?.permissions = permissions
        }
    }

    private func begin(_ directory: FileDescriptor, isGranting: Bool = true) throws(Errno) -> Key? {
        try entries.withLock { entries throws(Errno) in
            let status = try FileStatus(of: directory)
            guard status.owner == Machine.userIdentifier else { return nil }
            let key = Key(status)
            // A writable directory counts, too: another change may make it read-only before this one ends.
            if isGranting, status.permissions & Self.rights != Self.rights {
                try directory.setPermissions(status.permissions | Self.rights)
            }
            if entries[key] == nil { entries[key] = Entry(permissions: status.permissions) }
            entries[key]?.changes += 1
            return key
        }
    }

    private func end(_ key: Key, _ directory: FileDescriptor) {
        entries.withLock { entries in
            guard var entry = entries[key] else { return }
            entry.changes -= 1
            entries[key] = entry.changes > 0 ? entry : nil
            // Another program may have set other permissions since.
            guard entry.changes == 0, entry.permissions & Self.rights != Self.rights,
                let now = try? FileStatus(of: directory).permissions, now == entry.permissions | Self.rights
            else { return }
            try? directory.setPermissions(entry.permissions)
        }
    }
}
