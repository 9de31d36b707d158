import Syscalls
import SystemPackage

extension ReplicaDatabase {
    /// Puts all that was changed up to now on the disk (fdatasync), and deletes the content files that wait for it soon.
    ///
    /// The renames of these files go first: where the row is on the disk and the rename is not, a power cut leaves a content file that
    /// no row knows.
    ///
    /// - Parameter hasWithdrawn: whether files were withdrawn that do not wait here.
    func synchronize(hasWithdrawn: Bool = false) throws {
        // What is withdrawn after this may be committed after the sync.
        let end = withdrawn.beginSync()
        do {
            try commitAll()
            if hasWithdrawn || !withdrawn.isEmpty {
                for directory in withdrawalDirectories {
                    onSync(directory)
                    let names = try FileDescriptor.openDirectory(directory)
                    defer { try? names.close() }
                    try names.synchronize(asDirectory: true)
                }
            }
            onSync(log)
            let file = try FileDescriptor.open(log, .readOnly, options: .closeOnExec)
            defer { try? file.close() }
            try file.synchronize()
        } catch {
            withdrawn.retry(scheduledDeletion)
            throw error
        }
        withdrawn.deleteSoon(upTo: end)
    }

    /// Deletes the content files that wait, after their commits were put on the disk. Their blocks are free when this
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

    /// Deletes content files that a committed transaction has withdrawn, once that is on the disk. On a full disk their blocks are
    /// free when this returns: those of inodes that are gone are deleted at once, the others after a sync. Precondition: not called
    /// within a transaction.
    func deleteWhenDurable(_ files: [WithdrawnFile]) {
        let hasRoom = reserve.hasRoom
        if !hasRoom { WithdrawnFiles.delete(files.filter(\.isOfGoneInode).map(\.path)) }
        let waiting = hasRoom ? files : files.filter { !$0.isOfGoneInode }
        guard !waiting.isEmpty else { return }
        withdrawn.add(waiting, room: { reserve.available }, deletion: scheduledDeletion)
        // When this fails, it is tried again later.
        if !hasRoom { try? deleteWithdrawnFiles() }
    }

    private var scheduledDeletion: @Sendable () -> Void {
        { [weak self] in try? self?.deleteWithdrawnFilesSoon() }
    }
}
