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
    struct Unanswered {
        var identifier: ItemIdentifier
        var deadline: ContinuousClock.Instant
    }

    /// The maximum wait: the response to the system may be lost.
    private static let patience = Duration.seconds(2)

    /// Records a file that this provider has created.
    func noteMade(_ name: String, in directory: FileDescriptor, _ parent: ItemIdentifier) {
        guard let status = try? FileStatus(of: name, in: directory) else { return }
        let now = ContinuousClock.now
        let made = Unanswered(
            identifier: identifier(of: status, named: name, parent: parent), deadline: now + Self.patience)
        unanswered.withLock { unanswered in
            if unanswered.count > 256 { unanswered = unanswered.filter { $0.value.deadline > now } }
            unanswered[ChangeLog.Place(name, in: parent)] = made
        }
    }

    /// Discards the record of a name.
    func noteGone(_ name: String, _ parent: ItemIdentifier) {
        unanswered.withLock { $0[ChangeLog.Place(name, in: parent)] = nil }
    }

    private func isKnown(_ identifier: ItemIdentifier) -> Bool {
        manager.remotePath(of: identifier) != nil || manager.remoteTrashPath(of: identifier) != nil
    }

    /// Waits until the system knows the files that were created in a directory, with one name or any.
    func waitForAnswers(
        in directory: ItemIdentifier, named name: String? = nil, _ cancellation: BlockingCalls.Cancellation
    ) throws {
        let place = ChangeLog.Place(name, in: directory)
        let wanted = unanswered.withLock { unanswered in
            unanswered.filter { name == nil ? $0.key.directory == directory : $0.key == place }
        }
        for (place, made) in wanted {
            while ContinuousClock.now < made.deadline, !isKnown(made.identifier) {
                try cancellation.check()
                Thread.sleep(forTimeInterval: 0.002)
            }
            unanswered.withLock { unanswered in
                if unanswered[place]?.identifier == made.identifier { unanswered[place] = nil }
            }
        }
    }
}
