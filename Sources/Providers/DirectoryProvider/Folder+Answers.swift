import FileProvider
import Foundation
import Synchronization
import Syscalls
import SystemPackage

/// Files that this provider has just created, until the system knows them.
///
/// A concurrent listing of the directory would report the new file as another's, and the replaced file as deleted.
/// Such listings therefore wait briefly.
extension Folder {
    /// The maximum wait: the response to the system may be lost.
    private static let patience = Duration.seconds(2)

    /// Records a file that this provider has created.
    func noteMade(_ name: String, in directory: FileDescriptor, _ parent: ItemIdentifier) {
        guard let status = try? FileStatus(of: name, in: directory) else { return }
        let identifier = identifier(of: status, named: name, parent: parent)
        let deadline = ContinuousClock.now + Self.patience
        unanswered.withLock { $0.insert(identifier, at: ChangeLog.Place(name, in: parent), until: deadline) }
    }

    /// Discards the record of a name.
    func noteGone(_ name: String, _ parent: ItemIdentifier) {
        unanswered.withLock { $0.remove(ChangeLog.Place(name, in: parent)) }
    }

    private func isKnown(_ identifier: ItemIdentifier) -> Bool {
        manager.remotePath(of: identifier) != nil || manager.remoteTrashPath(of: identifier) != nil
    }

    /// Waits until the system knows the files that were created in a directory, with one name or any.
    func waitForAnswers(
        in directory: ItemIdentifier, named name: String? = nil, _ cancellation: BlockingCalls.Cancellation
    ) throws {
        let place = name.map { ChangeLog.Place($0, in: directory) }
        for (place, made) in unanswered.withLock({ $0.files(in: directory, at: place) }) {
            while ContinuousClock.now < made.deadline, !isKnown(made.identifier) {
                try cancellation.check()
                Thread.sleep(forTimeInterval: 0.002)
            }
            unanswered.withLock { $0.remove(place, ifStill: made.identifier) }
        }
    }
}
