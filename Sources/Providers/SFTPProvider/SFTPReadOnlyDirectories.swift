import FileProvider
import FileProviderPaths
import Synchronization

/// Lets this user list and change directories on the server that the user owns and whose modes deny it, while a change is stored in
/// them.
///
/// A process can write to a file in a read-only directory, or make the directory inaccessible after it has made the files. The server
/// must accept both, although files are replaced by renaming, and a directory's mode is stored before its files. If the connection
/// breaks before the mode is restored, the owner keeps the rights.
final class SFTPReadOnlyDirectories: Sendable {
    private struct Entry {
        /// How many changes are being stored in it.
        var changes = 0
        var permissions: UInt32

        var during: UInt32 { permissions | SFTPReadOnlyDirectories.rights }
    }

    private let entries = Mutex<[RemotePath: Entry]>([:])
    /// The owner's rights.
    private static let rights: UInt32 = 0o700
    /// The one that it takes to change something below a directory.
    private static let search: UInt32 = 0o100

    /// The attributes to be stored in place of others: while changes are stored in a directory, its owner may write nevertheless.
    func storing(_ attributes: SFTPAttributes, at path: RemotePath) -> SFTPAttributes {
        guard let permissions = attributes.permissions else { return attributes }
        return entries.withLock { entries in
            guard var entry = entries[path] else { return attributes }
            entry.permissions = permissions
            entries[path] = entry
            var attributes = attributes
            attributes.permissions = entry.during
            return attributes
        }
    }

    /// The entry as it is when no change is being stored in it.
    func shown(_ entry: RemoteEntry?, at path: RemotePath) -> RemoteEntry? {
        guard var shown = entry, shown.kind == .directory else { return entry }
        entries.withLock { entries in
            guard let entry = entries[path], shown.attributes.permissions.map(UInt32.init) == entry.during else {
                return
            }
            shown.attributes.permissions = UInt16(entry.permissions)
        }
        return shown
    }

    /// Gives the owner all rights, unless another change has done that.
    ///
    /// - Parameters:
    ///   - status: the attributes as they are now.
    ///   - isWritten: whether something is stored in the directory itself, and not only below it.
    ///   - store: sends permissions. What is sent after it, in the same session, finds them.
    func begin(
        _ path: RemotePath, _ status: SFTPAttributes, isWritten: Bool, _ store: (UInt32) -> SFTPRequest
    ) -> Begun {
        entries.withLock { entries in
            if entries[path] != nil {
                entries[path]?.changes += 1
                return .joined
            }
            let needed = isWritten ? Self.rights : Self.search
            guard let mode = status.permissions, mode & 0o170000 == 0o040000, mode & needed != needed else {
                return .isWritable
            }
            let entry = Entry(changes: 1, permissions: mode & 0o7777)
            entries[path] = entry
            return .sent(store(entry.during))
        }
    }

    enum Begun {
        case isWritable
        /// Another change has given it.
        case joined
        case sent(SFTPRequest)
    }

    /// A directory in which changes are being stored has another path.
    func move(_ path: RemotePath, to newPath: RemotePath) {
        entries.withLock { $0[newPath] = $0.removeValue(forKey: path) }
    }

    /// Takes the rights back after the last change.
    ///
    /// - Parameter status: the attributes as they are now; another client may have set others.
    func end(_ path: RemotePath, _ status: SFTPAttributes?, _ store: (UInt32) -> SFTPRequest) -> SFTPRequest? {
        entries.withLock { entries in
            guard var entry = entries[path] else { return nil }
            entry.changes -= 1
            entries[path] = entry.changes > 0 ? entry : nil
            guard entry.changes == 0, let mode = status?.permissions, mode & 0o7777 == entry.during,
                entry.permissions != entry.during
            else { return nil }
            return store(entry.permissions)
        }
    }
}
