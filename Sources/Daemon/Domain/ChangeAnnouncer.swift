import FUSE
import Foundation
import Replica
import Synchronization
import Syscalls
import SystemPackage

/// Raises events for remote changes in programs that watch files of the mount: file managers, editors, `inotifywait`. The
/// kernel itself reports only system calls that processes make on the mount.
///
/// After a change the announcer first looks for watches, at most every two to five seconds. Without any it does nothing else.
final class ChangeAnnouncer: Sendable {
    private struct State {
        /// Where the mount is, and its file system's device number.
        var place: (mountPoint: FilePath, device: UInt64)?
        var changes: [KernelInvalidation] = []
        var isScheduled = false
        var nextLook = ContinuousClock.now
    }

    private let database: ReplicaDatabase
    private let notifications: Notifications
    private let events: ChangeEvents
    private let state = Mutex(State())

    /// Changes that wait; further ones are not announced.
    private static let most = 10_000
    /// Gives the kernel time for the invalidations, and collects changes that arrive together.
    private static let delay = Duration.milliseconds(50)
    private static let shortestPause = Duration.seconds(2)
    /// Looking takes at most a tenth of the time, as long as it does not delay events by more than the longest pause.
    private static let share = 10
    private static let longestPause = Duration.seconds(5)

    /// - Parameter notifications: the invalidations, which come before the events.
    init(database: ReplicaDatabase, notifications: Notifications, events: ChangeEvents) {
        self.database = database
        self.notifications = notifications
        self.events = events
    }

    /// Changes are announced from now on, in the mount of a session.
    func begin(in session: Session) {
        guard let mountPoint = session.mountPoint, let device = session.deviceNumber else { return }
        state.withLock { $0.place = (mountPoint, device) }
    }

    /// Announces changes, soon. Returns at once; from any thread.
    func announce(_ changes: [KernelInvalidation]) {
        guard !changes.isEmpty else { return }
        let pause: Duration? = state.withLock { state in
            state.changes += changes.prefix(max(0, Self.most - state.changes.count))
            if state.isScheduled { return nil }
            state.isScheduled = true
            return max(Self.delay, state.nextLook - .now)
        }
        guard let pause else { return }
        Task { [weak self, notifications] in
            try? await Task.sleep(for: pause)
            await notifications.drain()
            // Reading /proc and the database blocks.
            DispatchQueue.global(qos: .utility).async { [weak self] in self?.raiseEvents() }
        }
    }

    private func raiseEvents() {
        let begin = ContinuousClock.now
        let place = state.withLock { $0.place }
        let watched = place.map { WatchedInodes(on: $0.device) }
        let end = ContinuousClock.now
        let changes = state.withLock { state in
            state.isScheduled = false
            state.nextLook = begin + min(max(Self.shortestPause, (end - begin) * Self.share), Self.longestPause)
            defer { state.changes = [] }
            return state.changes
        }
        guard let watched, !watched.isEmpty, let place else { return }
        var told: Set<[String]> = []
        for change in changes {
            for path in (try? paths(of: change, watched)) ?? [] where told.insert(path).inserted {
                let components = path.compactMap { FilePath.Component(fileNamed: $0) }
                if components.count == path.count { events.raise(at: place.mountPoint.appending(components)) }
            }
        }
    }

    /// The paths for which a watcher expects an event. Only those of items that exist: a name that the kernel looks up
    /// and does not find is asked of the remote.
    private func paths(of change: KernelInvalidation, _ watched: WatchedInodes) throws -> [[String]] {
        switch change {
        case .entry(let parent, let name), .departedFile(let parent, let name):
            let item = try database.item(named: name, in: parent)
            let isWatched = watched.contains(parent) || item.map { watched.contains($0.inode.number) } == true
            guard isWatched, let directory = try database.path(of: parent) else { return [] }
            return item == nil ? [directory] : [directory + [name], directory]
        case .deletion(let parent, _, _):
            guard watched.contains(parent), let directory = try database.path(of: parent) else { return [] }
            return [directory]
        case .attributes(let number), .contents(let number):
            guard let item = try database.item(ofInode: number),
                watched.contains(number) || item.parent.map(watched.contains) == true,
                let path = try database.path(of: number)
            else { return [] }
            return [path]
        }
    }
}

extension WatchedInodes {
    fileprivate func contains(_ number: InodeNumber) -> Bool { contains(UInt64(bitPattern: number.rawValue)) }
}
