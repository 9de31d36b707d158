import Dispatch
import GRDB
import Synchronization
import Syscalls
import SystemPackage

/// Room on the disk that is kept for the metadata, so that removing, moving and mounting work on a full disk, which is how room
/// is made.
///
/// Most of it is where only the databases write: blocks behind the ends of their write-ahead logs (FALLOC_FL_KEEP_SIZE), and
/// free pages within them, so that moving a log into its database needs no room on the disk. The rest is a preallocated
/// file. When a database finds no room any more, the file is removed, the log is moved into the database and is written from its
/// beginning again: then what failed is done once more. On a disk that gets full the logs are moved early. All of it is made
/// again as soon as there is room for several times of it.
final class MetadataReserve: Sendable {
    static let fileName = "reserve"
    private let directory: FilePath
    private let path: FilePath
    /// Whether there is no such file now.
    private let isReleased = Atomic<Bool>(true)
    /// Whether making it again is scheduled.
    private let isScheduled = Atomic<Bool>(false)
    /// Nothing is made in the directory once this is true.
    private let isClosed = Mutex(false)

    /// Of a small file system a fiftieth, at most 8 MiB, and at least 2 MiB or a tenth; under 256 KiB none.
    private static let largest: Int64 = 8 << 20
    private static let usual: Int64 = 2 << 20
    private static let smallest: Int64 = 256 << 10
    /// Eighths of it that are in the file. The databases have the others (``keepRoom(_:for:checkpoint:addFreePages:)``).
    private static let fileEighths: Int64 = 2
    /// Of a database's room, fifths that are free pages; the rest is behind the end of its log.
    private static let pageFifths: Int64 = 2
    private let databases = Mutex<[KeptDatabase]>([])

    private struct KeptDatabase: Sendable {
        var log: FilePath
        var eighths: Int64
        /// Moves the log into the database; a log that is longer than so many bytes is made as short.
        var checkpoint: @Sendable (Int64?) -> Void
        /// Gives the database so many bytes of free pages, unless it has half of them.
        var addFreePages: @Sendable (Int64) throws -> Void

        /// The log's.
        var length: Int64 { (try? FileStatus(at: log))?.size ?? 0 }

        func pages(of size: Int64) -> Int64 { size / 8 * eighths / 5 * MetadataReserve.pageFifths }
        func room(of size: Int64) -> Int64 { size / 8 * eighths - pages(of: size) }
    }
    /// There has to be room for so many.
    private static let needed: Int64 = 4
    private static let pause = DispatchTimeInterval.milliseconds(100)
    /// With less than this SQLite's errors of other kinds come from a full disk, too.
    private static let fullBelow: Int64 = 64 << 10
    /// With less than this, or a quarter of a small disk, a disk gets full.
    private static let lowBelow: Int64 = 256 << 20
    private let isLow = Atomic<Bool>(false)
    /// Free pages are made at the beginning, and with less than this: they cost twice their size in writes.
    private static let tightBelow: Int64 = 1 << 30
    private let hasFreePages = Atomic<Bool>(false)
    private let lastCheckpoint = Mutex<ContinuousClock.Instant?>(nil)
    private static let pauseBetweenCheckpoints = Duration.milliseconds(200)

    init(in directory: FilePath) {
        self.directory = directory
        path = directory.appending(Self.fileName)
        noteRoom()
        make()
    }

    /// Keeps a part of the room for a database: behind the end of its write-ahead log, and in free pages.
    ///
    /// - Parameters:
    ///   - checkpoint: moves the log into the database; called now and then on a disk that gets full. Its argument is how long the
    ///     log may be, nil for one that is not too long.
    ///   - addFreePages: gives the database so many bytes of free pages, unless it has half of them.
    func keepRoom(
        _ eighths: Int64, for database: FilePath, checkpoint: @escaping @Sendable (_ longest: Int64?) -> Void,
        addFreePages: @escaping @Sendable (Int64) throws -> Void
    ) {
        let log = FilePath(database.string + "-wal")
        databases.withLock {
            $0.append(KeptDatabase(log: log, eighths: eighths, checkpoint: checkpoint, addFreePages: addFreePages))
        }
    }

    /// Whether the disk has room for what is new.
    var hasRoom: Bool { !isLow.load(ordering: .relaxed) || available >= Self.fullBelow }

    /// Runs what writes to the database; on a full disk once more, with the reserve's room.
    ///
    /// - Parameter checkpoint: moves the log into the database, so that the log's room is used anew.
    /// - Throws: ENOSPC when there is no room then, either.
    func using<Value>(checkpoint: () throws -> Void = {}, _ body: () throws -> Value) throws -> Value {
        do {
            let value = try body()
            renew()
            return value
        } catch {
            guard isFull(error) else { throw named(error) }
        }
        release()
        try? checkpoint()
        do {
            return try body()
        } catch {
            throw named(error)
        }
    }

    /// Runs what writes to the database, and once more on a full disk, without blocking the calling thread but for the checkpoint.
    func using<Value>(checkpoint: () throws -> Void, _ body: () async throws -> Value) async throws -> Value {
        do {
            let value = try await body()
            renew()
            return value
        } catch {
            guard isFull(error) else { throw named(error) }
        }
        release()
        try? checkpoint()
        do {
            return try await body()
        } catch {
            throw named(error)
        }
    }

    /// Makes the file again before the database is closed: the next mount may need it.
    func prepareForClosing() {
        isClosed.withLock { isClosed in
            isClosed = true
            if isReleased.load(ordering: .relaxed), let size { makeFile(of: size / 8 * Self.fileEighths) }
        }
    }

    private func release() {
        isLow.store(true, ordering: .relaxed)
        isReleased.store(true, ordering: .releasing)
        try? path.unlinkIfPresent()
    }

    /// Makes it again soon: after every write, and once for all within a moment.
    private func renew() {
        guard !isScheduled.exchange(true, ordering: .relaxed) else { return }
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.pause) { [weak self] in
            guard let self else { return }
            isScheduled.store(false, ordering: .relaxed)
            let isOpen = isClosed.withLock { isClosed in
                guard !isClosed else { return false }
                noteRoom()
                make()
                return true
            }
            guard isOpen else { return }
            if isLow.load(ordering: .relaxed) || areLogsLong, !checkpointLogs() { renew() }
            addFreePages()
        }
    }

    private func noteRoom() {
        let total = (try? FileSystemStatistics(of: directory)).map { $0.bytes(in: $0.blocks) } ?? .max
        isLow.store(available < min(Self.lowBelow, total / 4), ordering: .relaxed)
    }

    /// Whether the logs are longer, together, than an eighth of what is free.
    private var areLogsLong: Bool {
        let lengths = databases.withLock { $0.map(\.length) }
        return lengths.reduce(0, +) > available / 8
    }

    /// - Returns: false if it is too early.
    private func checkpointLogs() -> Bool {
        let isTime = lastCheckpoint.withLock { last in
            if let last, ContinuousClock.now - last < Self.pauseBetweenCheckpoints { return false }
            last = .now
            return true
        }
        guard isTime else { return false }
        let size = size ?? 0
        for database in databases.withLock({ $0 }) {
            let room = database.room(of: size)
            database.checkpoint(database.length > 2 * room ? room : nil)
        }
        return true
    }

    /// Gives the databases their free pages: once, and on a disk that gets full whenever they have used half of them.
    func addFreePages() {
        let available = available
        guard available < Self.tightBelow || !hasFreePages.exchange(true, ordering: .relaxed), let size else { return }
        for database in databases.withLock({ $0 }) {
            let pages = database.pages(of: size)
            do {
                if available / 2 >= pages { try database.addFreePages(pages) }
            } catch {
                // After the next write.
                hasFreePages.store(false, ordering: .relaxed)
            }
        }
    }

    private func make() {
        guard let size else { return }
        for database in databases.withLock({ $0 }) { makeRoom(of: database.room(of: size), behind: database.log) }
        if isReleased.load(ordering: .relaxed) { makeFile(of: size / 8 * Self.fileEighths) }
    }

    /// How much is kept in all; nil for nothing.
    private var size: Int64? {
        guard let statistics = try? FileSystemStatistics(of: directory), !statistics.isReadOnly else { return nil }
        let total = statistics.bytes(in: statistics.blocks)
        let size = min(Self.largest, max(total / 50, min(Self.usual, total / 10)))
        return size >= Self.smallest ? size : nil
    }

    /// A log is as long as it was at its longest, and is written from its beginning again after a checkpoint.
    private func makeRoom(of size: Int64, behind path: FilePath) {
        // Not the file of the database and not its index: closing a descriptor of theirs would release SQLite's locks.
        guard
            let log = try? FileDescriptor.open(path, .writeOnly, options: [.closeOnExec, .noFollow])
        else { return }
        defer { try? log.close() }
        guard let status = try? FileStatus(of: log), status.allocated - status.size < size / 2,
            available / Self.needed >= size
        else { return }
        try? log.allocate(mode: FileDescriptor.keepingSize, offset: status.size, length: size)
    }

    private func makeFile(of size: Int64) {
        if let status = try? FileStatus(at: path), status.allocated >= size {
            return isReleased.store(false, ordering: .releasing)
        }
        guard available / Self.needed >= size else { return }
        do {
            let file = try FileDescriptor.open(
                path, .writeOnly, options: [.create, .closeOnExec, .noFollow], permissions: .ownerReadWrite)
            defer { try? file.close() }
            try file.allocate(mode: 0, offset: 0, length: size)
            isReleased.store(false, ordering: .releasing)
        } catch {
            try? path.unlinkIfPresent()
        }
    }

    /// How many bytes are free on the disk.
    var available: Int64 {
        guard let statistics = try? FileSystemStatistics(of: directory) else { return 0 }
        return statistics.bytes(in: statistics.availableBlocks)
    }

    private func isFull(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return false }
        switch error.resultCode.primaryResultCode {
        case .SQLITE_FULL: return true
        // The shared-memory file of the log cannot grow, or none can be made.
        case .SQLITE_IOERR, .SQLITE_CANTOPEN: return available < Self.fullBelow
        default: return false
        }
    }

    private func named(_ error: any Error) -> any Error { isFull(error) ? Errno.noSpace : error }
}
