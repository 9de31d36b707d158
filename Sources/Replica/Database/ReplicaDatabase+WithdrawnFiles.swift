import Syscalls
import SystemPackage

extension ReplicaDatabase {
    /// Puts all that was changed up to now on the disk (fdatasync), and deletes the content files that wait for it soon.
    func synchronize() throws { withdrawn.deleteSoon(try synchronizeWithdrawals()) }

    /// Deletes the content files of inodes that are gone, after their commits were put on the disk.
    package func deleteWithdrawnFiles() throws {
        if !withdrawn.isEmpty { WithdrawnFiles.delete(try synchronizeWithdrawals()) }
    }

    /// Deletes the content files of inodes that a committed transaction has deleted, once that is on the disk; at once on a full
    /// disk.
    func deleteWhenDurable(_ files: [WithdrawnFile]) {
        guard reserve.hasRoom else { return WithdrawnFiles.delete(files.map(\.path)) }
        withdrawn.add(files, room: { reserve.available }) { [weak self] in try? self?.deleteWithdrawnFiles() }
    }

    /// - Returns: the files that can be deleted then.
    private func synchronizeWithdrawals() throws -> [FilePath] {
        // What is withdrawn after this may be committed after the sync.
        let files = withdrawn.take()
        do {
            try commitAll()
            let file = try FileDescriptor.open(log, .readOnly, options: .closeOnExec)
            defer { try? file.close() }
            try file.synchronize()
        } catch {
            withdrawn.putBack(files)
            throw error
        }
        return files
    }
}
