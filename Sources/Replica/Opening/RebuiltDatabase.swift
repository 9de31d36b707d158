import FileProvider
import Syscalls
import SystemPackage

/// The files of a database that is made in place of a damaged one. The damaged one stays in its place, with its logs, until the new
/// one is whole and on the disk: a rebuild that is cut short before begins again from it.
///
/// SQLite would add the pages of the damaged one's write-ahead log to the new one, so the files cannot be replaced in one step. The
/// new one is made as `replica.sqlite-anew`, and gets the name `replica.sqlite-rebuilt` when it is complete. That is the decision;
/// ``adopt(in:stamp:reaching:)`` gives it its place, now or when the replica is opened next.
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

    /// Removes what is not complete.
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

    /// Replaces the damaged database with the new one, if one is complete. The replica must not be open.
    ///
    /// - Parameter stamp: names the folder to which the damaged one is moved.
    /// - Returns: whether there was a complete one.
    @discardableResult
    static func adopt(
        in directory: FilePath, stamp: Int64 = FileTimestamp.now.nanosecondsSince1970,
        reaching: (Step) throws -> Void = { _ in }
    ) throws -> Bool {
        let database = RebuiltDatabase(in: directory)
        guard (try? FileStatus(at: database.complete)) != nil else { return false }
        // The new database must never be beside the old log.
        try database.setAside(["-wal", "-shm"], stamp)
        try reaching(.logsAside)
        try database.setAside([""], stamp)
        try reaching(.databaseAside)
        try database.complete.move(to: database.place)
        try directory.synchronizeDirectory()
        return true
    }

    /// Moves files of the damaged database to a folder of their own.
    func setAside(_ suffixes: [String], _ stamp: Int64) throws {
        let files = suffixes.map { ReplicaDatabase.fileName + $0 }
            .filter { (try? FileStatus(at: directory.appending($0))) != nil }
        guard !files.isEmpty else { return }
        let folder = try ContentStore(in: directory).recovered.appending("database-\(stamp)")
        try folder.makeDirectory()
        for file in files { try directory.appending(file).move(to: folder.appending(file)) }
        try folder.synchronizeDirectory()
        try directory.synchronizeDirectory()
    }
}
