import FileProvider
import GRDB
import Synchronization
import Syscalls
import SystemPackage

/// Room on the disk that is kept for the database: a preallocated file beside it. On a full disk the file is removed and
/// the transaction is run once more, so that removing, moving and mounting work, which is how room is made. The file is
/// made again as soon as there is room for several of it.
final class MetadataReserve: Sendable {
    static let fileName = "reserve"
    private let directory: FilePath
    private let path: FilePath
    /// Whether there is no such file now.
    private let isReleased = Atomic<Bool>(true)
    private let lastTry = Mutex<ContinuousClock.Instant?>(nil)

    /// Of a small file system a fiftieth, at most 8 MiB; under 256 KiB none.
    private static let largest: Int64 = 8 << 20
    private static let smallest: Int64 = 256 << 10
    /// There has to be room for so many.
    private static let needed: Int64 = 4
    private static let pause = Duration.milliseconds(100)
    /// With less than this SQLite's errors of other kinds come from a full disk, too.
    private static let fullBelow: Int64 = 64 << 10

    init(in directory: FilePath) {
        self.directory = directory
        path = directory.appending(Self.fileName)
        make()
    }

    /// Runs what writes to the database; on a full disk once more, with the reserve's room.
    ///
    /// - Throws: ENOSPC when there is no room then, either.
    func using<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            let value = try body()
            renew()
            return value
        } catch {
            guard isFull(error), release() else { throw named(error) }
        }
        do {
            return try body()
        } catch {
            throw named(error)
        }
    }

    /// As ``using(_:)-sync``, without blocking the calling thread.
    func using<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            let value = try await body()
            renew()
            return value
        } catch {
            guard isFull(error), release() else { throw named(error) }
        }
        do {
            return try await body()
        } catch {
            throw named(error)
        }
    }

    /// Makes the file again before the database is closed: the next mount may need it.
    func prepareForClosing() {
        if isReleased.load(ordering: .relaxed) { make() }
    }

    // MARK: - Private

    /// Also where another call has released it just now.
    private func release() -> Bool {
        let wasReleased = isReleased.exchange(true, ordering: .acquiringAndReleasing)
        lastTry.withLock { $0 = .now }
        try? path.unlinkIfPresent()
        return !wasReleased || available > Self.fullBelow
    }

    private func renew() {
        guard isReleased.load(ordering: .relaxed) else { return }
        let isDue = lastTry.withLock { last in
            guard last.map({ ContinuousClock.now - $0 > Self.pause }) ?? true else { return false }
            last = .now
            return true
        }
        if isDue { make() }
    }

    private func make() {
        guard let statistics = try? FileSystemStatistics(of: directory), !statistics.isReadOnly else { return }
        let unit = Int64(clamping: statistics.blockSize)
        let total = Int64(clamping: statistics.blocks).multipliedReportingOverflow(by: unit)
        let size = min(Self.largest, (total.overflow ? .max : total.partialValue) / 50)
        guard size >= Self.smallest else { return }
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

    private var available: Int64 {
        guard let statistics = try? FileSystemStatistics(of: directory) else { return 0 }
        let bytes = Int64(clamping: statistics.availableBlocks)
            .multipliedReportingOverflow(by: Int64(clamping: statistics.blockSize))
        return bytes.overflow ? .max : bytes.partialValue
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
