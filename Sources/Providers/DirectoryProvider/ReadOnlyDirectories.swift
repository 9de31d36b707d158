import Synchronization
import Syscalls
import SystemPackage

/// The directories of this user whose modes forbid the user to write, while a change is stored in them: the user has the right
/// for that time.
///
/// A file can be changed in a read-only directory, and a directory can be made read-only after its files were made. What
/// was possible here must be possible there, where files are replaced by renaming and arrive in another order. If the daemon is
/// killed meanwhile, the owner's right to write stays.
final class ReadOnlyDirectories: Sendable {
    private struct Key: Hashable {
        var device: UInt64
        var inode: UInt64
    }

    private struct Entry {
        /// How many changes are being stored in it.
        var changes = 0
        var permissions: UInt16
    }

    private let entries = Mutex<[Key: Entry]>([:])
    /// The owner's rights to write and to search.
    private static let rights: UInt16 = 0o300

    /// Stores a change in directories.
    func writing<Value>(to directories: [FileDescriptor], _ body: () throws -> Value) throws -> Value {
        // Root needs no rights.
        guard Machine.userIdentifier != 0 else { return try body() }
        var changed: [(Key, FileDescriptor)] = []
        defer { for (key, directory) in changed { end(key, directory) } }
        for directory in directories {
            if let key = try begin(directory) { changed.append((key, directory)) }
        }
        return try body()
    }

    /// The permissions that a file has when no change is being stored in it.
    func permissions(of status: FileStatus) -> UInt16 {
        guard status.kind == .directory else { return status.permissions }
        return entries.withLock { entries in
            guard let entry = entries[Key(device: status.device, inode: status.inode)],
                status.permissions == entry.permissions | Self.rights
            else { return status.permissions }
            return entry.permissions
        }
    }

    private func begin(_ directory: FileDescriptor) throws(Errno) -> Key? {
        try entries.withLock { entries throws(Errno) in
            let status = try FileStatus(of: directory)
            guard status.owner == Machine.userIdentifier else { return nil }
            let key = Key(device: status.device, inode: status.inode)
            if entries[key] == nil {
                guard status.permissions & Self.rights != Self.rights else { return nil }
                try directory.setPermissions(status.permissions | Self.rights)
                entries[key] = Entry(permissions: status.permissions)
            }
            entries[key]?.changes += 1
            return key
        }
    }

    private func end(_ key: Key, _ directory: FileDescriptor) {
        entries.withLock { entries in
            guard var entry = entries[key] else { return }
            entry.changes -= 1
            entries[key] = entry.changes > 0 ? entry : nil
            // Permissions that were set meanwhile stay.
            guard entry.changes == 0, let now = try? FileStatus(of: directory).permissions,
                now == entry.permissions | Self.rights
            else { return }
            try? directory.setPermissions(entry.permissions)
        }
    }
}
