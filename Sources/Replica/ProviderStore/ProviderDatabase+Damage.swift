import FileProvider
import Foundation
import GRDB
import Syscalls
import SystemPackage

/// A provider's store that is damaged: found when the domain is opened and by `yonder check`, moved to the recovered folder,
/// and made anew with the records that can be read.
extension ProviderDatabase {
    /// Opens the store in a domain's folder, or makes it.
    ///
    /// - Parameters:
    ///   - wasMade: whether the domain had one before: then a missing file is damage.
    ///   - recovered: the folder to which a damaged file is moved.
    /// - Returns: the store, and what was found wrong and done about it, in words for the user.
    /// - Throws: what the disk says; a store of a newer Yonder is refused.
    static func open(
        in directory: FilePath, wasMade: Bool, recovered: FilePath, reserve: MetadataReserve
    ) throws -> (store: ProviderDatabase, finding: String?) {
        do {
            return (try openSound(in: directory, wasMade: wasMade, reserve: reserve), nil)
        } catch let damage as ReplicaDamage {
            let place = try setAside(in: directory, recovered)
            let store = try ProviderDatabase(at: directory.appending(fileName), reserve: reserve)
            let kept = try place.map { try store.takeRecords(fromDamaged: $0.appending(fileName)) } ?? 0
            let moved = place.map { "it was moved to '\($0)', and \(kept) of its records were kept" }
            return (store, "the provider's store was damaged (\(damage)): \(moved ?? "a new one was made")")
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
        return try ReplicaDatabase.namingDamage(isOpening: true) {
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

    /// - Returns: the folder that holds the files now; nil when there were none.
    private static func setAside(in directory: FilePath, _ recovered: FilePath) throws -> FilePath? {
        let names = ["", "-wal", "-shm"].map { fileName + $0 }
            .filter { FileManager.default.fileExists(atPath: directory.appending($0).string) }
        guard !names.isEmpty else { return nil }
        let place = recovered.appending("provider-\(FileTimestamp.now.nanosecondsSince1970)")
        try place.makeDirectory()
        for name in names { try directory.appending(name).move(to: place.appending(name)) }
        return place
    }

    /// Copies the records that can be read from a damaged file.
    ///
    /// - Returns: how many there were.
    private func takeRecords(fromDamaged path: FilePath) throws -> Int {
        guard let salvage = try? Salvage(at: path) else { return 0 }
        defer { salvage.close() }
        let rows = salvage.rows(of: "record", by: "id")
        return try transaction(.synced) { db in
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
    }
}

extension ReplicaDatabase {
    /// Opens the provider's store beside the database. What was wrong with it is kept with the other findings.
    ///
    /// - Parameter recovered: the directory to which a damaged store is moved.
    func openProviderStore(
        in directory: FilePath, recovered: FilePath
    ) throws -> (store: ProviderDatabase, finding: String?) {
        let wasMade = try hasProviderStore
        let (store, finding) = try ProviderDatabase.open(
            in: directory, wasMade: wasMade, recovered: recovered, reserve: reserve)
        if !wasMade { try set(.hasProviderStore, to: "1") }
        if let finding { try keep(findings: [finding], at: FileTimestamp.now) }
        return (store, finding)
    }

    var hasProviderStore: Bool {
        get throws { try value(of: .hasProviderStore) != nil }
    }
}
