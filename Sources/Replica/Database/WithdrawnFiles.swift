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
}

/// The content files of inodes that committed transactions have deleted. They wait here until these commits are on the disk: after
/// a power cut the database may have the rows again.
///
/// One sync of the database's log is enough for all that wait: one that a process asks for, or one some seconds after the
/// first of them, or at once when they take much of the disk.
final class WithdrawnFiles: Sendable {
    private struct State {
        var files: [FilePath] = []
        /// What they take on the disk.
        var bytes: Int64 = 0
        var mostBytes: Int64 = 0
        var isScheduled = false
        var isScheduledAtOnce = false
        var isClosed = false
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "yonder.withdrawn", qos: .utility)
    private static let pause = DispatchTimeInterval.seconds(5)
    /// Of what is free on the disk.
    private static let part: Int64 = 16
    private static let mostBytes: Int64 = 64 << 20
    /// What a file counts for at least: many small ones need memory, too.
    private static let leastBytes: Int64 = 4096

    /// Adds files whose transaction was committed.
    ///
    /// - Parameters:
    ///   - room: returns how many bytes are free on the disk.
    ///   - deletion: called on another thread when it is time to sync the log and to delete them.
    func add(_ added: [WithdrawnFile], room: () -> Int64, deletion: @escaping @Sendable () -> Void) {
        let pause: DispatchTimeInterval? = state.withLock { state in
            guard !state.isClosed else { return nil }
            if state.files.isEmpty { state.mostBytes = min(Self.mostBytes, room() / Self.part) }
            for file in added {
                state.files.append(file.path)
                state.bytes = state.bytes.saturatingAdd(max(Self.leastBytes, file.bytes))
            }
            if state.bytes > state.mostBytes {
                defer { state.isScheduledAtOnce = true }
                return state.isScheduledAtOnce ? nil : .seconds(0)
            }
            defer { state.isScheduled = true }
            return state.isScheduled ? nil : Self.pause
        }
        guard let pause else { return }
        let isAtOnce = pause != Self.pause
        queue.asyncAfter(deadline: .now() + pause) { [self] in
            state.withLock { state in
                if isAtOnce { state.isScheduledAtOnce = false } else { state.isScheduled = false }
            }
            deletion()
        }
    }

    var isEmpty: Bool { state.withLock { $0.files.isEmpty } }

    /// The caller puts the commits of these files on the disk, and deletes the files or puts them back.
    func take() -> [FilePath] {
        state.withLock { state in
            defer { (state.files, state.bytes) = ([], 0) }
            return state.files
        }
    }

    /// The log could not be synced: they are deleted after the next sync.
    func putBack(_ files: [FilePath]) { state.withLock { $0.files += files } }

    /// Deletes files, on another thread. What cannot be deleted is deleted at the next start.
    func deleteSoon(_ files: [FilePath]) {
        guard !files.isEmpty else { return }
        queue.async { Self.delete(files) }
    }

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
