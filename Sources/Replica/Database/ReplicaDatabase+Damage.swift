import Foundation
import GRDB
import SystemPackage

/// Databases that are damaged: said in one way, wherever it is noticed.
extension ReplicaDatabase {
    /// Runs what opens or checks a database, and says of one that is damaged that it is. The statements are correct, and so an error
    /// of theirs (a missing table, a violated constraint) is one of the file's.
    ///
    /// - Throws: ``ReplicaDamage`` in place of SQLite's errors for a file that is malformed, or no database at all.
    static func namingDamage<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as DatabaseError {
            if let damage = damageWhenOpening(error) { throw damage }
            throw ReplicaDamage(error) ?? error
        } catch let error as ReplicaDefect {
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

    /// Refuses a file that SQLite would open and that is not what it was. An empty or missing file is a new database to SQLite, also
    /// to a connection that only reads, which deletes the log beside it: where there are contents it is what is left of one. Of a
    /// damaged header SQLite believes most.
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
        let names = (try? files.contentsOfDirectory(atPath: directory.appending("contents").string)) ?? []
        // The content store's probe may be left of a domain that was being made.
        guard
            names.contains(where: { !$0.hasPrefix(".") })
                || files.fileExists(atPath: DomainSidecar.path(in: directory).string)
        else { return }
        throw ReplicaDamage(files.fileExists(atPath: path) ? "the file is empty" : "the file is missing")
    }
}
