import Dispatch
import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// A file that is to be deleted.
struct WithdrawnFile {
    var path: FilePath
    /// What it takes on the disk.
    var bytes: Int64
    /// Whether the file's inode was deleted; else the inode has another content, or none.
    var isOfGoneInode = true
}

/// The content files that committed transactions have withdrawn. They wait here until these commits are on the disk: after a power
/// cut the database may have the older rows again.
///
/// One sync of the database's log is enough for all that wait: one that a process asks for, or one some seconds after the
/// first of them, or at once when they take much of the disk.
final class WithdrawnFiles: Sendable {
    /// The directory of the content files, in the domain's directory.
    static let contentDirectory = "contents"
    /// The directory to which files are withdrawn, beside that of the content files.
    static let directory = "withdrawn"

    private struct State {
        var files: [FilePath] = []
        /// How many have left the list.
        var taken = 0
        /// What those take on the disk that were added after the last sync began.
        var bytes: Int64 = 0
        var mostBytes: Int64 = 0
        var isScheduled = false
        var isScheduledAtOnce = false
        var isClosed = false
    }

    private let state = Mutex(State())
    /// All are deleted here, one after the other.
    private let queue = DispatchQueue(label: "yonder.withdrawn", qos: .utility)
    private let pause: DispatchTimeInterval
    /// Of what is free on the disk.
    private static let part: Int64 = 16
    private static let mostBytes: Int64 = 64 << 20
    /// What a file counts for at least: many small ones need memory, too.
    private static let leastBytes: Int64 = 4096

    /// - Parameter pause: how long files wait at most.
    init(pause: DispatchTimeInterval = .seconds(5)) { self.pause = pause }

    /// Adds files whose transaction was committed.
    ///
    /// - Parameters:
    ///   - room: returns how many bytes are free on the disk.
    ///   - deletion: called on another thread when it is time to sync the log and to delete them. It must not wait for a deletion.
    func add(_ added: [WithdrawnFile], room: () -> Int64, deletion: @escaping @Sendable () -> Void) {
        state.withLock { state in
            guard !state.isClosed else { return }
            if state.files.isEmpty { state.mostBytes = min(Self.mostBytes, room() / Self.part) }
            for file in added {
                state.files.append(file.path)
                state.bytes = state.bytes.saturatingAdd(max(Self.leastBytes, file.bytes))
            }
            schedule(&state, isAtOnce: state.bytes > state.mostBytes, deletion)
        }
    }

    /// The log could not be synced: schedules another try. Never at once: each file that is added would sync a broken disk.
    func retry(_ deletion: @escaping @Sendable () -> Void) {
        state.withLock { state in
            if !state.files.isEmpty { schedule(&state, isAtOnce: false, deletion) }
        }
    }

    private func schedule(_ state: inout State, isAtOnce: Bool, _ deletion: @escaping @Sendable () -> Void) {
        guard !(isAtOnce ? state.isScheduledAtOnce : state.isScheduled) else { return }
        if isAtOnce { state.isScheduledAtOnce = true } else { state.isScheduled = true }
        queue.asyncAfter(deadline: .now() + (isAtOnce ? .seconds(0) : pause)) { [self] in
            self.state.withLock { state in
                if isAtOnce { state.isScheduledAtOnce = false } else { state.isScheduled = false }
            }
            deletion()
        }
    }

    var isEmpty: Bool { state.withLock { $0.files.isEmpty } }

    /// Begins a sync: the caller puts the commits of all that wait now on the disk.
    ///
    /// - Returns: what ``deleteSoon(upTo:)`` needs then.
    func beginSync() -> Int {
        state.withLock { state in
            state.bytes = 0
            return state.taken + state.files.count
        }
    }

    /// Deletes what waited when a sync began that has succeeded, on another thread. What cannot be deleted is deleted at the next
    /// start.
    func deleteSoon(upTo end: Int) {
        state.withLock { state in
            let count = min(end - state.taken, state.files.count)
            guard count > 0 else { return }
            let files = Array(state.files.prefix(count))
            state.files.removeFirst(count)
            state.taken += count
            // Within the lock: what is not in the list any more is what `wait()` waits for.
            queue.async { Self.delete(files) }
        }
    }

    /// Returns when all that was to be deleted is. Precondition: not called on its queue, and not while the caller holds up a
    /// commit, which that queue may wait for.
    func wait() { queue.sync {} }

    static func delete(_ files: [FilePath]) {
        for file in files { try? file.unlinkIfPresent() }
    }

    /// Nothing is deleted after this. Precondition: not called on its queue.
    ///
    /// - Parameter isDurable: whether all commits are on the disk; otherwise the files stay for the next start.
    func close(isDurable: Bool) {
        let files = state.withLock { state in
            state.isClosed = true
            defer { state.files = [] }
            return state.files
        }
        queue.sync { if isDurable { Self.delete(files) } }
    }
}
