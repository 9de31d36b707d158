import GRDB
import SystemPackage

extension Salvage {
    /// Makes the changes that were answered and not committed (``UncommittedChanges``, ``NewFiles``), as far as the damage
    /// allows.
    ///
    /// - Parameter path: of the damaged database, beside which its logs are.
    /// - Returns: the numbers in the changes that could not be made, among them those of their inodes.
    /// - Throws: errors that are none of the changes (`DatabaseError.isOfMachine`); an error for a log that cannot be read.
    func makeUncommittedChanges(of path: FilePath) throws -> Set<Int64> {
        var missed: Set<Int64> = []
        let identity = text(.identity)
        func isOurs(_ other: String) -> Bool { identity == nil || identity == other }
        if let log = try RedoLog.read(at: FilePath(path.string + "-redo")), isOurs(log.identity) {
            let written = text(.changesWritten).flatMap(Int64.init) ?? 0
            let records = log.records.filter { $0.sequence > written }
            // Changes that do not follow what the database has would be made on other rows. (``UncommittedChanges/recover(from:in:)``)
            let isNext = records.first?.sequence == written + 1
            for record in records {
                if isNext, try isMade({ db in try db.repeatChanges([record]) }) { continue }
                missed.formUnion(record.statements.flatMap(\.arguments).compactMap { Int64.fromDatabaseValue($0) })
            }
        }
        if let log = try NewFileLog.read(at: FilePath(path.string + "-new")), isOurs(log.identity) {
            let written = text(.newFilesWritten).flatMap(Int64.init) ?? 0
            let newest = Dictionary(log.files.map { ($0.sequence, $0) }, uniquingKeysWith: { $1 })
            for file in newest.values.sorted(by: { $0.sequence < $1.sequence }) where file.sequence > written {
                // One that has no row is set aside under its number.
                _ = try isMade { db in try db.insert([file]) }
            }
        }
        return missed
    }

    /// Makes one change, or nothing of it.
    private func isMade(_ change: (Database) throws -> Void) throws -> Bool {
        do {
            try write(change)
            return true
        } catch let error as DatabaseError where error.isOfMachine {
            throw error
        } catch {
            return false
        }
    }
}
