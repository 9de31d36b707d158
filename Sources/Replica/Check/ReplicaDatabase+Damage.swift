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
            throw damage(in: error) ?? error
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

    /// The damage that an error tells of; nil for any other error.
    static func damage(in error: any Error) -> ReplicaDamage? {
        guard let error = error as? DatabaseError else { return nil }
        switch error.resultCode.primaryResultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: return ReplicaDamage(error.message ?? "it cannot be read")
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
        // What was written last may all be in the log.
        let log = (try? files.attributesOfItem(atPath: path + "-wal"))?[.size] as? Int ?? 0
        guard log == 0 else { return }
        throw ReplicaDamage(files.fileExists(atPath: path) ? "the file is empty" : "the file has gone")
    }
}

/// What has to be known of a domain to begin again when its database is lost: a small file beside it.
package struct DomainSidecar: Codable, Hashable, Sendable {
    /// Where the remote is, as the user named it.
    package var source: String
    /// Where it was mounted last.
    package var mountpoint: String?
    /// How it was mounted, as JSON.
    package var options: String?

    package init(source: String, mountpoint: String?, options: String?) {
        self.source = source
        self.mountpoint = mountpoint
        self.options = options
    }

    /// The one in a domain's folder; nil where there is none that can be read.
    package init?(in directory: FilePath) {
        guard let data = FileManager.default.contents(atPath: Self.path(in: directory).string),
            let sidecar = try? JSONDecoder().decode(DomainSidecar.self, from: data)
        else { return nil }
        self = sidecar
    }

    /// Writes it, whole or not at all.
    package func write(in directory: FilePath) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try encoder.encode(self).write(to: URL(fileURLWithPath: Self.path(in: directory).string), options: .atomic)
    }

    static func path(in directory: FilePath) -> FilePath { directory.appending("domain.json") }
}
