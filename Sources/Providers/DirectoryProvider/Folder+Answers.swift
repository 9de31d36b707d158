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
        let place = ChangeLog.Place(directory: parent, name: Array(name.utf8))
        unanswered.withLock { unanswered in
            if unanswered.count > 256 { unanswered = unanswered.filter { $0.value.deadline > now } }
            unanswered[place] = made
        }
    }

    /// Discards the record of a name.
    func noteGone(_ name: String, _ parent: ItemIdentifier) {
        let place = ChangeLog.Place(directory: parent, name: Array(name.utf8))
        unanswered.withLock { $0[place] = nil }
    }

    private func isKnown(_ identifier: ItemIdentifier) -> Bool {
        manager.remotePath(of: identifier) != nil || manager.remoteTrashPath(of: identifier) != nil
    }

    /// Waits until the system knows the files that were created in a directory, with one name or any.
    func waitForAnswers(in directory: ItemIdentifier, named name: [UInt8]? = nil, _ wish: BlockingCalls.Wish) throws {
        let wanted = unanswered.withLock { unanswered in
            unanswered.filter { $0.key.directory == directory && (name == nil || $0.key.name == name) }
        }
        for (place, made) in wanted {
            while ContinuousClock.now < made.deadline, !isKnown(made.identifier) {
                try wish.check()
                Thread.sleep(forTimeInterval: 0.002)
            }
            unanswered.withLock { unanswered in
                if unanswered[place]?.identifier == made.identifier { unanswered[place] = nil }
            }
        }
    }
}
