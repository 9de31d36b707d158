import FileProvider
import GRDB
import Syscalls
import SystemPackage

/// The files of a database that is made in place of a damaged one. The damaged one stays in its place, with its logs, until the new
/// one is whole and on the disk: a rebuild that is cut short before begins again from it.
///
/// SQLite would add the pages of the damaged one's write-ahead log to the new one, so the files cannot be replaced in one step. The
/// new one is made as `replica.sqlite-anew`, and gets the name `replica.sqlite-rebuilt` when it is complete. That is the decision;
/// ``adopt(in:stamp:reaching:)`` renames it to `replica.sqlite`, now or when the replica is opened next.
struct RebuiltDatabase {
    /// Where it is made.
    let anew: FilePath
    private let directory: FilePath
    private let complete: FilePath
    private let place: FilePath

    /// The moments at which a rebuild can be cut short, for tests.
    enum Step: CaseIterable {
        case made, complete, logsAside, databaseAside
    }

    /// - Parameter directory: the replica's.
    init(in directory: FilePath) {
        self.directory = directory
        place = directory.appending(ReplicaDatabase.fileName)
        anew = FilePath(place.string + "-anew")
        complete = FilePath(place.string + "-rebuilt")
    }

    func removeIncomplete() {
        for suffix in ["", "-wal", "-shm", "-journal"] { try? FilePath(anew.string + suffix).unlinkIfPresent() }
    }

    /// Decides that the new database, which is closed, replaces the damaged one.
    ///
    /// - Throws: ENOSPC when the disk was too full for all of it.
    func decide() throws {
        // What is left in its own log has not got into it.
        if let log = try? FileStatus(at: FilePath(anew.string + "-wal")), log.size > 0 { throw Errno.noSpace }
        // The contents as well: those that fit no row of it are moved to the recovered folder.
        try directory.syncFileSystem()
        try anew.move(to: complete)
        try directory.synchronizeDirectory()
    }

    /// Whether a complete one is there, and not in its place.
    static func isWaiting(in directory: FilePath) -> Bool {
        (try? FileStatus(at: RebuiltDatabase(in: directory).complete)) != nil
    }

    /// Replaces the damaged database with the new one, if one is complete. The replica must not be open.
    ///
    /// - Parameter stamp: names the folder to which the damaged one is moved.
    /// - Returns: whether there was a complete one.
    @discardableResult
    static func adopt(
        in directory: FilePath, stamp: Int64 = FileTimestamp.now.nanosecondsSince1970,
        reaching: (Step) throws -> Void = { _ in }
    ) throws -> Bool {
        guard isWaiting(in: directory) else { return false }
        let database = RebuiltDatabase(in: directory)
        // The new database must never be beside the old log.
        try database.setAside(["-wal", "-shm"] + database.foreignLogs(), stamp)
        try reaching(.logsAside)
        try database.setAside([""], stamp)
        try reaching(.databaseAside)
        try database.complete.move(to: database.place)
        try directory.synchronizeDirectory()
        return true
    }

    /// The suffixes of those of the daemon's logs that are not the new database's: opening it would empty them.
    private func foreignLogs() throws -> [String] {
        let new = try DatabaseQueue(path: complete.string)
        defer { try? new.close() }
        let identity = try new.read { db in try DomainKey.identity.string(in: db) }
        let logs = try [
            ("-redo", RedoLog.read(at: FilePath(place.string + "-redo"))?.identity),
            ("-new", NewFileLog.read(at: FilePath(place.string + "-new"))?.identity),
        ]
        return logs.filter { $0.1 == nil || $0.1 != identity }.map(\.0)
    }

    /// Moves files of the damaged database to a folder of their own.
    private func setAside(_ suffixes: [String], _ stamp: Int64) throws {
        let files = suffixes.map { ReplicaDatabase.fileName + $0 }
            .filter { (try? FileStatus(at: directory.appending($0))) != nil }
        guard !files.isEmpty else { return }
        let folder = try ContentStore(in: directory).recovered.appending("database-\(stamp)")
        try folder.makeDirectory()
        for file in files { try directory.appending(file).move(to: folder.appending(file)) }
        try folder.synchronizeDirectory()
        try folder.removingLastComponent().synchronizeDirectory()
        try directory.synchronizeDirectory()
    }
}
