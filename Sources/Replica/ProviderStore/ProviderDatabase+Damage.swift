import FileProvider
import Foundation
import GRDB
import Syscalls
import SystemPackage

/// A provider's store that is damaged: found when the domain is opened and by `yonder check`, moved to the recovered folder,
/// and made anew with the records that can be read.
extension ProviderDatabase {
    private static let rebuilt = RebuiltDatabase.Kind(fileName: fileName, folder: "provider", hasLogs: false)

    /// Opens the store in a domain's folder, or makes it.
    ///
    /// - Parameters:
    ///   - wasMade: whether the domain had one before: then a missing file is damage.
    ///   - reaching: called at the moments at which a rebuild can be cut short, for tests.
    /// - Returns: the store, and what was found wrong and done about it, in words for the user.
    /// - Throws: what the disk says; a store of a newer Yonder is refused.
    static func open(
        in directory: FilePath, wasMade: Bool, reserve: MetadataReserve,
        reaching: (RebuiltDatabase.Step) throws -> Void = { _ in }
    ) throws -> (store: ProviderDatabase, finding: String?) {
        let isAdopted = try RebuiltDatabase.adopt(rebuilt, in: directory)
        do {
            let store = try openSound(in: directory, wasMade: wasMade, reserve: reserve)
            return (store, isAdopted ? "the provider's store was damaged: the new one is used" : nil)
        } catch let damage as ReplicaDamage {
            let stamp = FileTimestamp.now.nanosecondsSince1970
            let kept = try rebuild(in: directory, reserve: reserve, stamp: stamp, reaching)
            let store = try ProviderDatabase(at: directory.appending(fileName), reserve: reserve)
            let place = directory.appending(RebuiltDatabase.recovered).appending(rebuilt.folderName(stamp))
            let outcome =
                FileManager.default.fileExists(atPath: place.string)
                ? "it was moved to '\(place)', and \(kept) of its records were kept" : "a new one was made"
            return (store, "the provider's store was damaged (\(damage)): \(outcome)")
        }
    }

    /// What is wrong with the store in the folder of a domain that is not open. Nothing is changed.
    static func findings(in directory: FilePath, wasMade: Bool, reserve: MetadataReserve) throws -> [CheckFinding] {
        let isThere = FileManager.default.fileExists(atPath: directory.appending(fileName).string)
        guard isThere || wasMade else { return [] }
        do {
            let store = try openSound(in: directory, wasMade: wasMade, reserve: reserve)
            defer { try? store.close() }
            return try store.check(isRepairing: false)
        } catch let damage as ReplicaDamage {
            return [CheckFinding(.database, "the provider's store is damaged: \(damage)")]
        }
    }

    /// Checks the open store with SQLite's own check, and each record for being JSON.
    ///
    /// - Parameter isRepairing: makes indexes anew, and moves records that cannot be read to the table `unreadable`. What is
    ///   damaged beyond that is put right when the domain is opened next.
    func check(isRepairing: Bool) throws -> [CheckFinding] {
        var complaints = complaints()
        if isRepairing, !complaints.isEmpty {
            try? transaction(.synced) { try $0.execute(sql: "REINDEX") }
            let left = self.complaints()
            if left.isEmpty {
                return complaints.map {
                    CheckFinding(.database, "the provider's store: \($0): the indexes were made anew", isMended: true)
                }
            }
            complaints = left
        }
        guard complaints.isEmpty else {
            return complaints.map {
                CheckFinding(
                    .database, "the provider's store is damaged: \($0); unmount the domain and run this with '--repair'"
                )
            }
        }
        return try checkRecords(isRepairing: isRepairing)
    }

    private static let isUnreadable = "typeof(value) <> 'text' OR NOT json_valid(value)"

    private func checkRecords(isRepairing: Bool) throws -> [CheckFinding] {
        let names = try query { db in
            try db.all("SELECT namespace, key FROM record WHERE \(Self.isUnreadable)", []) {
                "'\(String(decoding: $0.bytes(1), as: UTF8.self))' of '\($0[0] as String)'"
            }
        }
        if isRepairing, !names.isEmpty {
            try transaction(.synced) { db in
                try db.run(
                    """
                    INSERT INTO unreadable (namespace, key, value, foundAt)
                    SELECT namespace, key, value, ? FROM record WHERE \(Self.isUnreadable)
                    """, [FileTimestamp.now.nanosecondsSince1970])
                try db.run("DELETE FROM record WHERE \(Self.isUnreadable)", [])
            }
        }
        return names.map {
            let outcome = isRepairing ? ": it was moved to the table 'unreadable'" : ""
            return CheckFinding(
                .database, "the provider's record \($0) cannot be read\(outcome)", isMended: isRepairing)
        }
    }

    private func complaints() -> [String] {
        do {
            return try query { db in
                let lines = try String.fetchAll(db, sql: "PRAGMA integrity_check(20)")
                return lines == ["ok"] ? [] : lines
            }
        } catch let error as DatabaseError {
            return [error.message ?? "it cannot be read"]
        } catch {
            return ["\(error)"]
        }
    }

    /// - Throws: ``ReplicaDamage``.
    private static func openSound(
        in directory: FilePath, wasMade: Bool, reserve: MetadataReserve
    ) throws -> ProviderDatabase {
        let path = directory.appending(fileName)
        if let defect = try defect(ofFileAt: path, wasMade: wasMade) { throw ReplicaDamage(defect) }
        return try ReplicaDatabase.namingDamage {
            let store = try ProviderDatabase(at: path, reserve: reserve)
            do {
                try store.query { db in
                    let lines = try String.fetchAll(db, sql: "PRAGMA quick_check(1)")
                    if lines != ["ok"] { throw ReplicaDamage(lines.first ?? "it cannot be read") }
                    let table = try String.fetchOne(db, sql: "SELECT sql FROM sqlite_master WHERE name = 'record'")
                    if table != ProviderSchema.record { throw ReplicaDamage("the definition of its table is damaged") }
                }
            } catch {
                try? store.close()
                throw error
            }
            return store
        }
    }

    /// What SQLite does not notice: to it an empty or missing file is a new database, whose log it deletes, and it believes most of a
    /// header.
    private static func defect(ofFileAt path: FilePath, wasMade: Bool) throws -> String? {
        let files = FileManager.default
        func size(_ path: String) -> Int { (try? files.attributesOfItem(atPath: path))?[.size] as? Int ?? 0 }
        guard size(path.string) > 0 else {
            guard wasMade else { return nil }
            return files.fileExists(atPath: path.string) ? "the file is empty" : "the file is missing"
        }
        guard let header = DatabaseHeader(at: path) else {
            return size(path.string) < DatabaseHeader.length ? "the file has \(size(path.string)) bytes" : nil
        }
        return header.defect
    }

    /// Replaces a damaged store with a new one that has the records that can be read. The damaged one stays until that is complete.
    ///
    /// - Returns: how many there are.
    private static func rebuild(
        in directory: FilePath, reserve: MetadataReserve, stamp: Int64,
        _ reaching: (RebuiltDatabase.Step) throws -> Void
    ) throws -> Int {
        let salvage = try Salvage.ifDatabase(at: directory.appending(fileName), reading: { _, _ in })
        let rows = salvage?.rows(of: "record", by: "id") ?? []
        salvage?.close()
        let store = RebuiltDatabase(rebuilt, in: directory)
        defer { store.removeIncomplete() }
        let kept = try reserve.using { () throws -> Int in
            store.removeIncomplete()
            return try make(at: store.anew, of: rows)
        }
        try reaching(.made)
        try store.decide()
        try reaching(.complete)
        try RebuiltDatabase.adopt(rebuilt, in: directory, stamp: stamp, reaching: reaching)
        return kept
    }

    /// Makes a store of the rows of a damaged one.
    ///
    /// - Returns: how many of them are records.
    private static func make(at path: FilePath, of rows: [SalvagedRow]) throws -> Int {
        var configuration = Configuration()
        configuration.journalMode = .wal
        let queue = try DatabaseQueue(path: path.string, configuration: configuration)
        do {
            try ProviderSchema.migrator.migrate(queue)
            let kept = try queue.write { db in
                var kept = 0
                for row in rows {
                    guard let namespace = row.text("namespace"), let value = row.text("value"),
                        case .blob(let key) = row["key"].storage
                    else { continue }
                    try db.run(
                        "INSERT OR IGNORE INTO record (namespace, key, value) SELECT ?1, ?2, ?3 WHERE json_valid(?3)",
                        [namespace, key, value])
                    kept += db.changesCount
                }
                return kept
            }
            try queue.close()
            return kept
        } catch {
            try? queue.close()
            throw error
        }
    }
}

extension ReplicaDatabase {
    /// Opens the provider's store beside the database. What was wrong with it is kept with the other findings.
    func openProviderStore(in directory: FilePath) throws -> (store: ProviderDatabase, finding: String?) {
        let wasMade = try hasProviderStore
        let (store, finding) = try ProviderDatabase.open(in: directory, wasMade: wasMade, reserve: reserve)
        if !wasMade { try set(.hasProviderStore, to: "1") }
        if let finding { try keep(findings: [finding], at: FileTimestamp.now) }
        return (store, finding)
    }

    var hasProviderStore: Bool {
        get throws { try value(of: .hasProviderStore) != nil }
    }
}
