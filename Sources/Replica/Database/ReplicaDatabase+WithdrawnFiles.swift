import Syscalls
import SystemPackage

extension ReplicaDatabase {
    /// Puts all that was changed up to now on the disk (fdatasync), and deletes the content files that wait for it soon.
    func synchronize() throws {
        // What is withdrawn after this may be committed after the sync.
        let end = withdrawn.beginSync()
        do {
            try commitAll()
            let file = try FileDescriptor.open(log, .readOnly, options: .closeOnExec)
            defer { try? file.close() }
            try file.synchronize()
        } catch {
            withdrawn.retry(scheduledDeletion)
            throw error
        }
        withdrawn.deleteSoon(upTo: end)
    }

    /// Deletes the content files of inodes that are gone, after their commits were put on the disk. Their blocks are free when this
    /// returns. Precondition: not called within a transaction.
    package func deleteWithdrawnFiles() throws {
        try deleteWithdrawnFilesSoon()
        withdrawn.wait()
    }

    /// As ``deleteWithdrawnFiles()``, but does not wait for the deletion: for what runs where the files are deleted, which would
    /// wait for itself, and for the reserve, which needs no room at once and should not depend on a thread that commits.
    func deleteWithdrawnFilesSoon() throws {
        if !withdrawn.isEmpty { try synchronize() }
    }

    /// Deletes the content files of inodes that a committed transaction has deleted, once that is on the disk; at once on a full
    /// disk.
    func deleteWhenDurable(_ files: [WithdrawnFile]) {
        guard reserve.hasRoom else { return WithdrawnFiles.delete(files.map(\.path)) }
        withdrawn.add(files, room: { reserve.available }, deletion: scheduledDeletion)
    }

    private var scheduledDeletion: @Sendable () -> Void {
        { [weak self] in try? self?.deleteWithdrawnFilesSoon() }
    }
}
