import FileProvider
import Foundation
import Synchronization
import Syscalls
import SystemPackage

/// Files that this provider has just made, and that the system does not know yet because it is still being told.
///
/// Whoever looks at their directory meanwhile would tell it first that a stranger has come, and that the file which had
/// the name is gone. So he waits for a moment.
extension Folder {
    struct Unanswered {
        var identifier: ItemIdentifier
        var deadline: ContinuousClock.Instant
    }

    /// The longest that anybody waits: an answer may get lost.
    private static let patience = Duration.seconds(2)

    /// What has this name now is of this provider's making.
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

    /// What had this name is gone from there.
    func noteGone(_ name: String, _ parent: ItemIdentifier) {
        let place = ChangeLog.Place(directory: parent, name: Array(name.utf8))
        unanswered.withLock { $0[place] = nil }
    }

    private func isKnown(_ identifier: ItemIdentifier) -> Bool {
        manager.remotePath(of: identifier) != nil || manager.remoteTrashPath(of: identifier) != nil
    }

    /// Waits until the system knows what was made in a directory, under one name or under any.
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
