import FileProvider
import GRDB
import Syscalls
import SystemPackage

/// The files of a database that is made in place of a damaged one. The damaged one stays in its place, with its logs, until the new
/// one is whole and on the disk: a rebuild that is cut short before begins again from it.
///
/// SQLite would add the pages of the damaged one's write-ahead log to the new one, so the files cannot be replaced in one step. The
/// new one is made as `replica.sqlite-anew`, and gets the name `replica.sqlite-rebuilt` when it is complete. That is the decision;
/// ``adopt(_:in:stamp:reaching:)`` renames it to `replica.sqlite`, now or when the replica is opened next.
struct RebuiltDatabase {
    /// A database of a domain.
    struct Kind {
        let fileName: String
        /// Begins the name of the folder to which a damaged one is moved.
        let folder: String
        /// Whether the daemon's logs of local changes belong to it.
        let hasLogs: Bool

        static let replica = Kind(fileName: ReplicaDatabase.fileName, folder: "database", hasLogs: true)

        func folderName(_ stamp: Int64) -> String { "\(folder)-\(stamp)" }
    }

    /// The directory for what is kept of damaged files, in the domain's.
    static let recovered = "recovered"

    /// Where it is made.
    let anew: FilePath
    private let kind: Kind
    private let directory: FilePath
    private let complete: FilePath
    private let place: FilePath

    /// The moments at which a rebuild can be cut short, for tests.
    enum Step: CaseIterable {
        case made, complete, logsAside, databaseAside
    }

    /// - Parameter directory: the replica's.
    init(_ kind: Kind = .replica, in directory: FilePath) {
        self.kind = kind
        self.directory = directory
        place = directory.appending(kind.fileName)
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
    static func isWaiting(_ kind: Kind = .replica, in directory: FilePath) -> Bool {
        (try? FileStatus(at: RebuiltDatabase(kind, in: directory).complete)) != nil
    }

    /// Replaces the damaged database with the new one, if one is complete. The replica must not be open.
    ///
    /// - Parameter stamp: names the folder to which the damaged one is moved.
    /// - Returns: whether there was a complete one.
    @discardableResult
    static func adopt(
        _ kind: Kind = .replica, in directory: FilePath, stamp: Int64 = FileTimestamp.now.nanosecondsSince1970,
        reaching: (Step) throws -> Void = { _ in }
    ) throws -> Bool {
        guard isWaiting(kind, in: directory) else { return false }
        let database = RebuiltDatabase(kind, in: directory)
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
        guard kind.hasLogs else { return [] }
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
        let files = suffixes.map { kind.fileName + $0 }
            .filter { (try? FileStatus(at: directory.appending($0))) != nil }
        guard !files.isEmpty else { return }
        let recovered = directory.appending(Self.recovered)
        try recovered.makeDirectory()
        let folder = recovered.appending(kind.folderName(stamp))
        try folder.makeDirectory()
        for file in files { try directory.appending(file).move(to: folder.appending(file)) }
        try folder.synchronizeDirectory()
        try recovered.synchronizeDirectory()
        try directory.synchronizeDirectory()
    }
}
