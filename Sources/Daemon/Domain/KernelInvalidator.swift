import FUSE
import Logging
import Replica
import Synchronization

/// Sends the invalidations that follow from a commit to the kernel, deletes their records after that, and passes them to the
/// announcer of changes.
final class KernelInvalidator: KernelCache {
    private let notifications: Notifications
    private let database: ReplicaDatabase
    private let announcer: ChangeAnnouncer
    private let logger: Logger
    private let state = Mutex(State())

    private struct State {
        /// The last invalidation that was posted.
        var last: Int64 = 0
        var isSweeping = false
    }

    /// Records are deleted in batches, when the last repetition of an expiry has been sent: a lost deletion only repeats invalidations.
    private static let pause = Notifications.repetitionInterval * 3

    init(
        notifications: Notifications, database: ReplicaDatabase, announcer: ChangeAnnouncer, logger: Logger
    ) {
        self.notifications = notifications
        self.database = database
        self.announcer = announcer
        self.logger = logger
    }

    func forget(_ effects: ReplicaEffects) {
        for invalidation in effects.invalidations { post(invalidation) }
        announcer.announce(effects.invalidations)
        guard effects.lastInvalidation > 0 else { return }
        let isFirst = state.withLock { state in
            state.last = max(state.last, effects.lastInvalidation)
            defer { state.isSweeping = true }
            return !state.isSweeping
        }
        if isFirst { Task { await sweep() } }
    }

    private func post(_ invalidation: KernelInvalidation) {
        switch invalidation {
        case .entry(let parent, let name):
            notifications.expireEntry(parent: NodeID(parent), name: FileName(name))
        case .departedFile(let parent, let name):
            notifications.dropEntry(parent: NodeID(parent), name: FileName(name))
        case .deletion(let parent, let child, let name):
            notifications.deleteEntry(parent: NodeID(parent), child: NodeID(child), name: FileName(name))
        case .attributes(let number): notifications.invalidateAttributes(NodeID(number))
        case .contents(let number): notifications.invalidateContents(NodeID(number))
        }
    }

    private func sweep() async {
        var isDone = false
        while !isDone {
            let last = state.withLock { $0.last }
            try? await Task.sleep(for: Self.pause)
            await notifications.drain()
            do {
                try await database.forgetInvalidations(upTo: last)
            } catch {
                logger.debug("the records of invalidations cannot be deleted: \(error)")
            }
            isDone = state.withLock { state in
                state.isSweeping = state.last > last
                return !state.isSweeping
            }
        }
    }
}

extension NodeID {
    fileprivate init(_ number: InodeNumber) {
        self.init(UInt64(bitPattern: number.rawValue))
    }
}
