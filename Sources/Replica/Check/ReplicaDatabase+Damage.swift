import Foundation
import GRDB
import SystemPackage

/// Databases that are damaged: said in one way, wherever it is noticed.
extension ReplicaDatabase {
    /// Runs what reads a database, and says of one that is damaged that it is.
    ///
    /// - Throws: ``ReplicaDamage`` in place of SQLite's errors for a file that is malformed, or no database at all.
    static func namingDamage<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw damage(in: error) ?? error
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

    /// An empty file is a new database to SQLite. Where there are contents it is what is left of one.
    ///
    /// - Throws: ``ReplicaDamage``.
    static func refuseEmpty(in directory: FilePath) throws {
        let files = FileManager.default
        let path = directory.appending(fileName).string
        let size = (try? files.attributesOfItem(atPath: path))?[.size] as? Int ?? 0
        guard size == 0 else { return }
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
