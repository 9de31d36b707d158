import FileNames
import FileProvider
import Foundation
import Synchronization
import Syscalls
import SystemPackage

/// Watches listed directories on a thread of its own, and logs changed paths.
final class FolderWatcher: Sendable {
    private struct Watches {
        var directories: [Int32: ItemIdentifier] = [:]
        var hasReportedLimit = false
        /// A directory could not be watched, so the folder must be compared.
        var isIncomplete = false
    }

    private let inotify: Inotify
    private let folder: Folder
    private var manager: any FileProviderManager { folder.manager }
    private var log: ChangeLog { folder.log }
    private let watches = Mutex(Watches())
    /// Events that are read and not in the log.
    private let gathered = Mutex<[Inotify.Event]>([])
    /// Paths from which files were moved, by the cookies of the last events: those of their new paths may come next.
    private let moves = Mutex<[UInt32: ChangeLog.Place]>([:])
    private static let gatheringMilliseconds: Int32 = 15
    /// A program that changes files all the time must not delay what others have changed.
    private static let longestGathering = Duration.milliseconds(100)
    private static let mostGathered = 4096
    /// The time between two comparisons of a folder that is not watched as a whole.
    private let pause: Duration

    init(folder: Folder, pause: Duration = .seconds(10)) throws(Errno) {
        inotify = try Inotify()
        self.folder = folder
        self.pause = pause
        log.catchUp.withLock { catchUp in
            catchUp = { [weak self] in
                // The thread does not see these events any more.
                if let self, self.catchUp() { manager.signalEnumerator() }
            }
        }
        let thread = Thread { [self] in run() }
        thread.name = "yonder-inotify"
        thread.start()
    }

    /// Watches a directory from now on.
    ///
    /// - Returns: whether it was not watched before, and is now.
    @discardableResult
    func watch(_ directory: FileDescriptor, as identifier: ItemIdentifier) -> Bool {
        do throws(Errno) {
            // Another folder may be in the place of the source then.
            let watch = try inotify.watch(directory, tellsOfMoves: identifier == .rootContainer)
            return watches.withLock { $0.directories.updateValue(identifier, forKey: watch) } == nil
        } catch {
            let (wasComplete, isFirst) = watches.withLock { watches in
                defer { watches.isIncomplete = true }
                // A directory that cannot be read has its own message wherever it is listed.
                guard error != .permissionDenied else { return (!watches.isIncomplete, false) }
                defer { watches.hasReportedLimit = true }
                return (!watches.isIncomplete, !watches.hasReportedLimit)
            }
            // It waits without a timeout.
            if wasComplete { inotify.wake() }
            if isFirst {
                let hint = error == .noSpace ? "; raise fs.inotify.max_user_watches to have changes at once" : ""
                manager.report(
                    "not all directories of the source can be watched (\(error)): they are compared every ten seconds\(hint)"
                )
            }
            return false
        }
    }

    /// The root is watched from now on: a trash that was made before, since the trash was listed, is watched and reported.
    func findTrash(of folder: Folder) {
        guard watchTrash(of: folder) else { return }
        log.append([ChangeLog.Place(Folder.ownTrash, in: .rootContainer)])
        manager.signalEnumerator()
    }

    /// Watches a directory that is listed, and reports it where it has changed since the system heard of it: nothing has told of its date
    /// while it was not watched.
    func watch(listed directory: FileDescriptor, as identifier: ItemIdentifier) {
        watch(directory, as: identifier)
        guard let known = manager.knownVersion(of: identifier), let status = try? FileStatus(of: directory),
            FolderItems.version(of: status) != known
        else { return }
        log.append([ChangeLog.Place(nil, in: identifier)])
        manager.signalEnumerator()
    }

    /// Watches a new directory and reports the items that were added to it since.
    func watch(made directory: FileDescriptor, as identifier: ItemIdentifier) {
        watch(directory, as: identifier)
        let names = ((try? directory.names()) ?? []).filter { !$0.starts(with: HiddenName.prefix.utf8) }
        guard !names.isEmpty else { return }
        log.append(names.map { ChangeLog.Place(FileNameText.text(of: $0), in: identifier) })
        manager.signalEnumerator()
    }

    func stop() {
        inotify.stop()
    }

    private func run() {
        var mounts = MountTable.mounts(around: folder.path)
        var comparedAt = ContinuousClock.now
        let milliseconds = Int32(pause / Duration.milliseconds(1))
        while true {
            let timeout = watches.withLock { $0.isIncomplete } ? milliseconds : nil
            guard let isReady = inotify.wait(milliseconds: timeout) else { return }
            // Also while programs change watched directories all the time.
            if timeout != nil, .now - comparedAt >= pause {
                comparedAt = .now
                log.expire()
                manager.signalEnumerator()
            }
            guard isReady else { continue }
            // Most changes cause several events, which are collected.
            let end = ContinuousClock.now + Self.longestGathering
            repeat {
                let count = gathered.withLock { events in
                    events += inotify.next()
                    return events.count
                }
                if count > Self.mostGathered || ContinuousClock.now > end { break }
            } while inotify.wait(milliseconds: Self.gatheringMilliseconds) == true
            takeGathered()
            if inotify.takeMountChange() {
                let now = MountTable.mounts(around: folder.path)
                if now != mounts { mountsHaveChanged() }
                mounts = now
            }
            manager.signalEnumerator()
        }
    }

    /// A file system came or went, in the folder or with it. What was changed there meanwhile is not known, and what failed because it was
    /// away can be done.
    private func mountsHaveChanged() {
        log.reset()
        folder.hasUnfinishedEdits.store(true, ordering: .relaxed)
        manager.signalErrorResolved(.ubiquitousFileUnavailable)
    }

    /// Logs what was changed before the call, unless it caused more events than are gathered at once.
    ///
    /// - Returns: whether there are changes of which the watcher's thread does not tell the system.
    @discardableResult
    func catchUp() -> Bool {
        let hasMore = gathered.withLock { events in
            let before = events.count
            while events.count <= Self.mostGathered {
                let next = inotify.next()
                if next.isEmpty { break }
                events += next
            }
            return events.count > before
        }
        takeGathered()
        return hasMore
    }

    private func takeGathered() {
        // Under the lock: a caller that finds no events here finds them in the log.
        gathered.withLock { events in
            take(events)
            events = []
        }
    }

    private func take(_ events: [Inotify.Event]) {
        var places: [ChangeLog.Place] = []
        var seen: Set<ChangeLog.Place> = []
        var written: Set<ChangeLog.Place> = []
        var moves: [UInt32: ChangeLog.Place] = [:]
        let earlierMoves = self.moves.withLock { $0 }
        func add(_ place: ChangeLog.Place) {
            if seen.insert(place).inserted { places.append(place) }
        }
        var isIncomplete = false
        for event in events {
            if event.kind == .overflow { isIncomplete = true }
            guard let directory = watches.withLock({ $0.directories[event.watch] }) else { continue }
            // The provider's own temporary files.
            if let name = event.name, HiddenName.isOne(name) { continue }
            switch event.kind {
            case .ended: watches.withLock { $0.directories[event.watch] = nil }
            case .directoryChanged: add(ChangeLog.Place(in: directory))
            case .changed, .removed, .movedAway:
                if let name = event.name {
                    let place = ChangeLog.Place(name, in: directory)
                    if event.kind == .movedAway {
                        log.noteMovedAway(place)
                        moves[event.cookie] = place
                    } else if let old = moves[event.cookie] ?? earlierMoves[event.cookie] {
                        log.noteMoved(from: old, to: place)
                        if written.contains(old) { written.insert(place) }
                    }
                    if event.isWrite { written.insert(place) }
                    add(place)
                }
                add(ChangeLog.Place(in: directory))
            case .overflow: break
            }
        }
        self.moves.withLock { $0 = moves }
        if isIncomplete { log.reset() } else { log.append(places, written: written) }
    }
}
