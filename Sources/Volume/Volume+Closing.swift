import Logging
import Replica
import Syscalls
import SystemPackage

/// The ends of open files.
extension Volume {
    /// A handle for writing was closed; ``closeWritten(_:registry:)`` follows.
    ///
    /// - Returns: false if the request was counted before, and what follows is already under way.
    package func noteClosing(_ node: UInt64, request: RequestNumber? = nil) -> Bool {
        files.noteClosing(InodeNumber(node), request: request)
    }

    /// Closes one handle of a file.
    package func close(
        _ node: UInt64, wasWriting: Bool, registry: (any PassthroughRegistry)?, request: RequestNumber? = nil
    ) {
        let number = InodeNumber(node)
        if wasWriting { _ = record([number]) }
        let file = files.release(number, forWriting: wasWriting, request: request)
        finish(file, number, wasWriting: wasWriting, registry: registry)
    }

    /// Closes a handle that the kernel has not received, because the request failed or was given up.
    package func undoOpen(
        _ node: UInt64, wasWriting: Bool, registry: (any PassthroughRegistry)?, request: RequestNumber?
    ) {
        let number = InodeNumber(node)
        if wasWriting { _ = record([number]) }
        let file = files.release(number, forWriting: wasWriting, undoing: request)
        finish(file, number, wasWriting: wasWriting, registry: registry)
    }

    /// Closes one handle for writing of each file and records the changes.
    ///
    /// - Returns: the nodes of which the changes cannot be recorded now, because the disk is full or something is wrong with the file,
    ///   once for each handle: their handles are not closed.
    package func closeWritten(_ nodes: [UInt64], registry: (any PassthroughRegistry)?) -> [UInt64] {
        let closed = nodes.map { InodeNumber($0) }
        var failed: Set<InodeNumber> = []
        if let error = record(closed, areNoted: true) {
            failed = Set(closed)
            // On a full disk none can be recorded; otherwise a single file does not hold the others up.
            if error != .refused(.noSpace), failed.count > 1 { recordSingly(closed, &failed) }
            if let one = failed.first {
                let words = failed.count == 1 ? "inode \(one)" : "\(failed.count) files"
                logger.error("what was written to \(words) cannot be recorded yet: \(error)")
            }
        }
        for number in closed where !failed.contains(number) {
            let file = files.release(number, forWriting: true, wasNoted: true)
            finish(file, number, wasWriting: true, registry: registry)
        }
        return nodes.filter { failed.contains(InodeNumber($0)) }
    }

    /// Records files one by one, for a limited time: each may fail, as on a disk with a defect. The next attempt begins with others.
    private func recordSingly(_ closed: [InodeNumber], _ failed: inout Set<InodeNumber>) {
        let end = ContinuousClock.now + Self.longestSingly
        for number in failed.shuffled() where ContinuousClock.now < end {
            let ofOne = closed.filter { $0 == number }
            if record(ofOne, areNoted: true, failuresAt: .debug) == nil { failed.remove(number) }
        }
    }

    private static let longestSingly = Duration.seconds(1)

    /// The daemon begins to write a new file itself. Until ``endImport(of:)`` the file counts as open for writing: it stays marked
    /// when a process that has written to it closes it.
    package func beginImport(of number: InodeNumber) { files.beginImport(of: number) }

    /// The daemon has written the file. Called in the transaction that records it; a second call changes nothing.
    package func endImport(of number: InodeNumber) {
        if files.endImport(of: number) { observer.didCloseInode(number) }
    }

    /// Records what was written to files with handles that are being closed.
    ///
    /// - Parameter areNoted: whether ``noteClosing(_:request:)`` preceded. Otherwise handles whose close waits to be recorded do not count: each
    ///   of the two would take the other one for a writer.
    /// - Returns: why it cannot be recorded now; nil if it is.
    private func record(
        _ closed: [InodeNumber], areNoted: Bool = false, failuresAt level: Logger.Level = .error
    ) -> VolumeError? {
        // A mount that is read-only now may have had writers.
        guard !isReadOnly else { return nil }
        do throws(VolumeError) {
            try change(changingNames: false, failuresAt: level) { changes in
                // The files still count as open, so that no remote change is applied in between. A file with other
                // writers is compared when they have closed it.
                for number in Set(closed) where !files.hasOtherWriters(number, than: closed, areNoted: areNoted) {
                    try changes.contents.endWriting(number)
                }
            }
            return nil
        } catch {
            logger.debug("what was written to \(closed) cannot be recorded yet: \(error)")
            return error
        }
    }

    /// Releases what the handles of a file used, after the last of them was closed.
    ///
    /// - Parameter file: nil after another handle.
    private func finish(
        _ file: OpenFile?, _ number: InodeNumber, wasWriting: Bool, registry: (any PassthroughRegistry)?
    ) {
        guard let file else {
            if wasWriting, !files.isOpenForWriting(number) { observer.didEndWriting(number) }
            return
        }
        file.withState { state in
            if let backing = state.backing { registry?.unregister(backing) }
            state = OpenFile.State()
        }
        observer.didCloseInode(number)
    }
}
