import Foundation
import GRDB
import SystemPackage

/// Databases that are damaged: said in one way, wherever it is noticed.
extension ReplicaDatabase {
    /// Runs what reads a database, and says of one that is damaged that it is.
    ///
    /// - Parameter isOpening: whether the statements are those of opening and checking. They are correct, and so an
    ///   error of theirs (a missing table, a violated constraint) is one of the file's.
    /// - Throws: ``ReplicaDamage`` in place of SQLite's errors for a file that is malformed, or no database at all.
    static func namingDamage<Value>(isOpening: Bool = false, _ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as DatabaseError {
            if isOpening, let damage = damageWhenOpening(error) { throw damage }
            throw ReplicaDamage(error) ?? error
        } catch let error as ReplicaDefect where isOpening {
            throw ReplicaDamage(error.description)
        }
    }

    /// The damage that an error of opening tells of; nil for an error that passes, or that the disk is the reason of.
    private static func damageWhenOpening(_ error: DatabaseError) -> ReplicaDamage? {
        switch error.resultCode.primaryResultCode {
        case .SQLITE_ERROR, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_SCHEMA, .SQLITE_RANGE, .SQLITE_TOOBIG:
            return ReplicaDamage(error.message ?? "it cannot be read")
        default: return nil
        }
    }

    /// Refuses a file that SQLite would open and that is not what it was. An empty file is a new database to SQLite: where
    /// there are contents it is what is left of one. Of a damaged header SQLite believes most.
    ///
    /// - Throws: ``ReplicaDamage``.
    static func refuseDamagedFile(in directory: FilePath) throws {
        let files = FileManager.default
        let path = directory.appending(fileName).string
        let size = (try? files.attributesOfItem(atPath: path))?[.size] as? Int ?? 0
        guard size == 0 else {
            guard let header = DatabaseHeader(at: FilePath(path)) else {
                if size >= DatabaseHeader.length { return }
                throw ReplicaDamage("the file has \(size) bytes")
            }
            if let defect = header.defect { throw ReplicaDamage(defect) }
            return
        }
        let contents = (try? files.contentsOfDirectory(atPath: directory.appending("contents").string)) ?? []
        guard !contents.isEmpty || files.fileExists(atPath: DomainSidecar.path(in: directory).string) else { return }
        // All recent writes may be in the log.
        let log = (try? files.attributesOfItem(atPath: path + "-wal"))?[.size] as? Int ?? 0
        guard log == 0 else { return }
        throw ReplicaDamage(files.fileExists(atPath: path) ? "the file is empty" : "the file is missing")
    }
}
