import FileProvider
import Foundation
import GRDB
import Logging
import Syscalls
import SystemPackage

/// Makes a new database in place of one that is damaged. What is known for certain stays: items that the remote knows, with
/// their inode numbers, and contents that are here whole and as the remote gave them. The rest the remote tells
/// again. What was written here and is not on the remote is moved to the recovered folder, under the name that it had.
package struct ReplicaRebuild {
    /// What was kept, and what was set aside.
    package private(set) var findings: [CheckFinding] = []
    private let directory: FilePath
    private let contents: ContentStore
    private let stamp = Replica.now.nanosecondsSince1970
    private var inodes: [Int64: Row] = [:]
    private var items: [Row] = []
    private var domain: DomainSidecar?

    /// Rebuilds the replica in a folder, which nobody may have open.
    ///
    /// - Throws: what the disk says; nothing is lost then. ``ReplicaDamage`` when it is not known any more where the
    ///   remote is.
    package static func run(in directory: FilePath, logger: Logger) throws -> [CheckFinding] {
        var rebuild = try ReplicaRebuild(directory)
        try rebuild.run()
        // Opening it compares contents and rows: what has no row goes to the recovered folder.
        let replica = try Replica(at: directory, logger: logger)
        rebuild.findings += replica.findings.map { CheckFinding(.contents, $0, isMended: true) }
        try replica.close()
        return rebuild.findings
    }

    private init(_ directory: FilePath) throws {
        self.directory = directory
        contents = try ContentStore(in: directory)
    }

    private mutating func run() throws {
        let damaged = try setDatabaseAside()
        readWhatIsLeft(of: damaged)
        guard let domain else {
            throw ReplicaDamage("where its remote is cannot be found out; the old database is '\(damaged)'")
        }
        let database = try ReplicaDatabase(at: directory.appending(ReplicaDatabase.fileName), readers: 2)
        defer { try? database.close() }
        let recovery = Recovery(database: database, contents: contents, logger: Logger(label: "rebuild"))
        try recovery.makeRoot()
        try database.set(.source, to: domain.source)
        try database.set(.mountpoint, to: domain.mountpoint)
        try database.set(.options, to: domain.options)
        let kept = try insert(into: database)
        findings.append(
            CheckFinding(
                .database,
                "a new database was made; \(kept) of its items are as they were, the remote tells the others again",
                isMended: true))
    }

    /// The files of the damaged database, together in a folder of their own.
    private func setDatabaseAside() throws -> FilePath {
        let place = contents.recovered.appending("database-\(stamp)")
        try place.makeDirectory()
        for suffix in ["", "-wal", "-shm"] {
            let name = ReplicaDatabase.fileName + suffix
            let path = directory.appending(name)
            guard FileManager.default.fileExists(atPath: path.string) else { continue }
            try path.move(to: place.appending(name))
        }
        return place.appending(ReplicaDatabase.fileName)
    }

    private mutating func readWhatIsLeft(of damaged: FilePath) {
        domain = DomainSidecar(in: directory)
        guard let salvage = try? Salvage(at: damaged) else { return }
        defer { salvage.close() }
        if domain == nil, let source = salvage.text(.source) {
            domain = DomainSidecar(
                source: source, mountpoint: salvage.text(.mountpoint), options: salvage.text(.options))
        }
        for row in salvage.rows(of: "deletion", by: "id") {
            let name = row["baseName"] as String? ?? ""
            findings.append(
                CheckFinding(
                    .tree, "it was removed here and the remote has not heard of that: it comes back", name: name,
                    isMended: true))
        }
        for row in salvage.rows(of: "inode", by: "number") { inodes[row["number"]] = row }
        items = salvage.rows(of: "item", by: "id")
    }

    // MARK: - What is kept

    /// - Returns: how many items were kept.
    private mutating func insert(into database: ReplicaDatabase) throws -> Int {
        var children: [Int64: [Row]] = [:]
        for item in items {
            guard let parent = item["parent"] as Int64?, item["inode"] as Int64? != 1 else { continue }
            children[parent, default: []].append(item)
        }
        var kept: Set<Int64> = [1]
        var identifiers: Set<String> = ["yonder.root"]
        var waiting: [(inode: Int64, path: FilePath)] = [(1, "")]
        let columns = try database.read { db in
            (inode: Set(try db.columns(in: "inode").map(\.name)), item: Set(try db.columns(in: "item").map(\.name)))
        }
        while let (parent, path) = waiting.popLast() {
            var names: Set<[UInt8]> = []
            for item in children[parent] ?? [] {
                guard let number = item["inode"] as Int64?, let name = item["name"] as String?,
                    let inode = inodes[number], !kept.contains(number), let component = FilePath.Component(name),
                    FileProviderItem.defect(ofFilename: name) == nil
                else { continue }
                let place = path.appending(component)
                let isDirty = Self.isDirty(item, inode)
                try recover(item, inode, as: place)
                let isDirectory = inode["kind"] as Int64? == 2
                guard Self.isKnownToRemote(item), let identifier = item["identifier"] as String?,
                    identifiers.insert(identifier).inserted, names.insert(Array(name.utf8)).inserted
                else {
                    // What was written below it is to be found, too.
                    if isDirectory { try recoverAll(below: number, as: place, children, &kept) }
                    continue
                }
                kept.insert(number)
                let hasContent = try !isDirty && isIntact(inode)
                try database.write { db in
                    // What was written is of no version of the remote's: it is the last one of those again.
                    let base = isDirty ? item : nil
                    try Self.insert(inode, base: base, hasContent: hasContent, columns.inode, in: db)
                    try Self.insert(item, columns.item, in: db)
                }
                if isDirectory { waiting.append((number, place)) }
            }
        }
        try leaveNumbersOut(of: database)
        return kept.count - 1
    }

    /// Nothing that is new may get the number of something that is lost.
    private func leaveNumbersOut(of database: ReplicaDatabase) throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: contents.directory.string).compactMap(
            Int64.init)
        let highest = max(inodes.keys.max() ?? 1, files.max() ?? 1) + 1000
        try database.write { db in
            try db.execute(
                sql: "UPDATE sqlite_sequence SET seq = MAX(seq, ?) WHERE name = 'inode'", arguments: [highest])
        }
    }

    private static func isKnownToRemote(_ item: Row) -> Bool {
        let isLocal = (item["isExcluded"] as Int64? ?? 0) != 0 || item["trashRole"] as Int64? ?? 0 != 0
        return !isLocal && item["trashedAt"] as Int64? == nil && item["baseParent"] as String? != nil
            && item["baseName"] as String? != nil && (item["changedFields"] as Int64? ?? 0) & 6 == 0
    }

    /// Whether this machine may have the only copy of what it contains.
    private static func isDirty(_ item: Row, _ inode: Row) -> Bool {
        let changed = item["changedFields"] as Int64? ?? 0
        return inode["kind"] as Int64? == 1 && inode["hasContentFile"] as Int64? == 1
            && (changed & 1 != 0 || item["identifier"] as String? == nil || inode["contentStamp"] as Int64? != nil)
    }

    /// Whether the content of a file is here whole, as its row says.
    private func isIntact(_ inode: Row) throws -> Bool {
        guard let number = inode["number"] as Int64?, let size = inode["size"] as Int64?,
            inode["kind"] as Int64? == 1, inode["content"] as Int64? == 2, inode["hasContentFile"] as Int64? == 1
        else { return false }
        return (try? contents.status(of: InodeNumber(rawValue: number)).size) == size
    }

    private static func insert(
        _ row: Row, base: Row?, hasContent: Bool, _ columns: Set<String>, in db: Database
    ) throws {
        var values = row.values(in: columns)
        if let base {
            values["size"] = base["baseSize"]
            values["contentVersion"] = base["baseContentVersion"]
            if let date = base["baseModifiedAt"] as DatabaseValue?, !date.isNull { values["modifiedAt"] = date }
        }
        let kind = row["kind"] as Int64? ?? 1
        let isEmpty = kind == 1 && values["size"].flatMap { Int64.fromDatabaseValue($0) } == 0
        values["content"] = (kind == 3 || hasContent || isEmpty ? 2 : 0).databaseValue
        values["hasContentFile"] = (hasContent ? 1 : 0).databaseValue
        if !hasContent { values["localBytes"] = 0.databaseValue }
        values["linkCount"] = 1.databaseValue
        for name in ["subdirectories", "isIncomplete", "fetchAgain"] { values[name] = 0.databaseValue }
        values["contentStamp"] = .null
        try db.insert(values, into: "inode")
    }

    private static func insert(_ row: Row, _ columns: Set<String>, in db: Database) throws {
        var values = row.values(in: columns)
        for name in ["changedFields", "wasSent", "attempts"] {
            values[name] = 0.databaseValue
        }
        for name in ["pendingSince", "nextTry", "conflictOf"] { values[name] = .null }
        try db.insert(values, into: "item")
    }

    // MARK: - What is set aside

    private mutating func recoverAll(
        below number: Int64, as path: FilePath, _ children: [Int64: [Row]], _ kept: inout Set<Int64>
    ) throws {
        var waiting = [(number, path)]
        while let (parent, path) = waiting.popLast() {
            guard kept.insert(parent).inserted else { continue }
            for item in children[parent] ?? [] {
                guard let number = item["inode"] as Int64?, let name = item["name"] as String?,
                    let inode = inodes[number], let component = FilePath.Component(name)
                else { continue }
                try recover(item, inode, as: path.appending(component))
                if inode["kind"] as Int64? == 2 { waiting.append((number, path.appending(component))) }
            }
        }
        kept.remove(number)
    }

    /// Sets aside what only this machine has of an item, and says what is lost.
    private mutating func recover(_ item: Row, _ inode: Row, as path: FilePath) throws {
        guard let number = inode["number"] as Int64?, (item["isExcluded"] as Int64? ?? 0) == 0 else { return }
        let isNew = item["identifier"] as String? == nil
        if Self.isDirty(item, inode) {
            try recover(number, as: path)
        } else if isNew, inode["kind"] as Int64? == 3, let target = inode["linkTarget"] as String? {
            let place = try makePlace(for: path, number)
            try FileManager.default.createSymbolicLink(atPath: place.string, withDestinationPath: target)
            note("it was not on the remote, and is '\(place)'", number, path)
        } else if isNew, inode["kind"] as Int64? == 2 {
            let place = try makePlace(for: path, number)
            try FileManager.default.createDirectory(atPath: place.string, withIntermediateDirectories: true)
            note("it was not on the remote, and is '\(place)'", number, path)
        }
        let lost = ItemFields(rawValue: UInt32(truncatingIfNeeded: item["changedFields"] as Int64? ?? 0))
            .subtracting([.contents, .contentModificationDate])
        if !isNew, !lost.isEmpty {
            note(
                "these changes were not on the remote, and are lost: \(lost.names.joined(separator: ", "))", number,
                path)
        }
    }

    private mutating func note(_ text: String, _ number: Int64, _ path: FilePath) {
        findings.append(
            CheckFinding(
                .contents, text, inode: InodeNumber(rawValue: number), name: path.string, isMended: true))
    }

    /// A free place below the folder for what was written here.
    private func makePlace(for path: FilePath, _ number: Int64) throws -> FilePath {
        let place = contents.recovered.appending("written-\(stamp)").pushing(path)
        try FileManager.default.createDirectory(
            atPath: place.removingLastComponent().string, withIntermediateDirectories: true)
        let isTaken = FileManager.default.fileExists(atPath: place.string)
        return isTaken ? FilePath(place.string + "-\(number)") : place
    }

    /// Moves what was written here out of the contents, to where it was below a folder of its own.
    private mutating func recover(_ number: Int64, as path: FilePath) throws {
        let source = contents.path(of: InodeNumber(rawValue: number))
        guard FileManager.default.fileExists(atPath: source.string) else { return }
        let place = try makePlace(for: path, number)
        try source.move(to: place)
        note("what was written to it and was not on the remote is '\(place)'", number, path)
    }
}

extension Row {
    /// The columns that the present schema has, too.
    fileprivate func values(in columns: Set<String>) -> [String: DatabaseValue] {
        var values: [String: DatabaseValue] = [:]
        for (name, value) in self where columns.contains(name) { values[name] = value }
        return values
    }
}

extension Database {
    fileprivate func insert(_ values: [String: DatabaseValue], into table: String) throws {
        let names = values.keys.sorted()
        let columns = names.map { "\"\($0)\"" }.joined(separator: ", ")
        let places = names.map { _ in "?" }.joined(separator: ", ")
        try execute(
            sql: "INSERT INTO \(table) (\(columns)) VALUES (\(places))",
            arguments: StatementArguments(names.compactMap { values[$0] }))
    }
}
