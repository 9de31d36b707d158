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
    /// The items that were kept, and those that were set aside.
    package private(set) var findings: [CheckFinding] = []
    private let directory: FilePath
    private let contents: ContentStore
    private var stamp = FileTimestamp.now.nanosecondsSince1970
    private var inodes: [Int64: SalvagedRow] = [:]
    private var items: [SalvagedRow] = []
    private var domain: DomainSidecar?
    /// Whether a power cut may have taken bytes of downloads that were not synced.
    private var mayMissBytes = true
    /// The files of whose content this machine may have the only copy, whichever of their names says so.
    private var dirty: Set<Int64> = []
    /// The files that are set aside when the new database is decided on, and where they were.
    private var written: [(number: Int64, path: FilePath)] = []

    /// Rebuilds the replica in a folder. It must not be open elsewhere.
    ///
    /// - Parameter isForRemoval: whether the domain is to be forgotten: then it need not be known where its remote is.
    /// - Throws: errors of the disk, among them a full one; nothing is lost then. ``ReplicaDamage`` when the location of the remote is
    ///   unknown; nothing was changed then.
    package static func run(
        in directory: FilePath, isForRemoval: Bool = false, logger: Logger
    ) throws -> [CheckFinding] {
        try run(in: directory, isForRemoval: isForRemoval, logger: logger) { _ in }
    }

    /// - Parameters:
    ///   - reaching: called at each step; what it throws cuts the rebuild short.
    ///   - reading: called before each read of the damaged database; what it throws counts as an error of that.
    static func run(
        in directory: FilePath, isForRemoval: Bool = false, logger: Logger,
        reaching: (RebuiltDatabase.Step) throws -> Void, reading: Salvage.Reading = { _, _ in }
    ) throws -> [CheckFinding] {
        var rebuild = try ReplicaRebuild(directory)
        if isForRemoval { rebuild.domain = DomainSidecar(source: "", mountpoint: nil, options: nil) }
        var isAdopted = try RebuiltDatabase.adopt(in: directory)
        if isAdopted {
            rebuild.findings.append(
                CheckFinding(.database, "the new database of a check that was cut short is used", isMended: true))
        } else {
            try rebuild.run(mayKeepAll: true, reaching, reading)
        }
        // Opening it compares contents and rows: what has no row goes to the recovered folder.
        let replica: Replica
        do {
            replica = try Replica(at: directory, logger: logger)
        } catch is ReplicaDamage {
            // SQLite finds nothing wrong with the rows, and they contradict each other.
            try rebuild.run(mayKeepAll: false, reaching, reading)
            isAdopted = false
            replica = try Replica(at: directory, logger: logger)
        }
        var opening = replica.findings
        if isAdopted {
            let kept = try replica.database.keptFindings()
            opening = kept + opening.filter { !kept.contains($0) }
        }
        rebuild.findings += opening.map { CheckFinding(.contents, $0, isMended: true) }
        try replica.database.forgetFindings()
        try replica.close()
        return rebuild.findings
    }

    /// Puts the new database of a rebuild that was cut short in its place, if it is complete. The replica must not be open.
    package static func finish(in directory: FilePath) throws { try RebuiltDatabase.adopt(in: directory) }

    private init(_ directory: FilePath) throws {
        self.directory = directory
        contents = try ContentStore(in: directory)
    }

    /// - Parameter mayKeepAll: whether a database whose rows can all be read is written anew with all of them.
    private mutating func run(
        mayKeepAll: Bool, _ reaching: (RebuiltDatabase.Step) throws -> Void, _ reading: Salvage.Reading
    ) throws {
        stamp = FileTimestamp.now.nanosecondsSince1970
        written = []
        let path = directory.appending(ReplicaDatabase.fileName)
        let salvage = try Salvage.ifDatabase(at: path, reading: reading)
        defer { salvage?.close() }
        domain = DomainSidecar(in: directory) ?? salvage.flatMap(Self.domain(in:)) ?? domain
        guard let domain else { throw ReplicaDamage("where its remote is cannot be found out") }
        let rebuilt = RebuiltDatabase(in: directory)
        rebuilt.removeIncomplete()
        defer { rebuilt.removeIncomplete() }
        let isWhole = try mayKeepAll && salvage.map { try $0.writeAnew(to: rebuilt.anew) } ?? false
        var kept = 0
        if !isWhole {
            rebuilt.removeIncomplete()
            if let salvage {
                dirty = try salvage.makeUncommittedChanges(of: path)
                mayMissBytes =
                    salvage.text(.wasClosed) != "1" && salvage.text(.bootIdentifier) != Machine.bootIdentifier
                readWhatIsLeft(in: salvage)
            }
            kept = try Self.make(at: rebuilt.anew, of: domain, contents) { database in
                try database.set(.isRebuilt, to: "1")
                let kept = try insert(into: database)
                try database.keep(findings: findingsForLater(kept), at: FileTimestamp.now)
                return kept
            }
        }
        try reaching(.made)
        try rebuilt.decide()
        try reaching(.complete)
        // Not before: the rows of the damaged database need them if it stays. When this is cut short, the opening does it.
        for (number, path) in written { try recover(number, as: path) }
        try RebuiltDatabase.adopt(in: directory, stamp: stamp, reaching: reaching)
        if isWhole {
            findings.append(
                CheckFinding(
                    .database, "all its rows could be read: a new database was made with all of them", isMended: true))
            // It goes on with the logs.
            try Self.make(at: path, of: domain, contents) { _ in }
        } else {
            findings.append(CheckFinding(.database, Self.summary(kept), isMended: true))
        }
    }

    private static func summary(_ kept: Int) -> String {
        "a new database was made; \(kept) of its items are as they were, the remote tells the others again"
    }

    /// What the next check reports if this one is cut short.
    private func findingsForLater(_ kept: Int) -> [String] {
        let place = contents.recovered
        return findings.map { finding in finding.name.map { "'\($0)': \(finding.text)" } ?? finding.text }
            + written.map { "'\($0.path)': what was written to it and was not on the remote is in '\(place)'" }
            + [Self.summary(kept)]
    }

    /// Opens a database, or makes it, with the root and what is known of the domain, and closes it.
    private static func make<Value>(
        at path: FilePath, of domain: DomainSidecar, _ contents: ContentStore, _ body: (ReplicaDatabase) throws -> Value
    ) throws -> Value {
        let database = try ReplicaDatabase(at: path, readers: 2)
        do {
            let recovery = Recovery(database: database, contents: contents, logger: Logger(label: "rebuild"))
            try recovery.makeRoot()
            try database.set(.source, to: domain.source)
            try database.set(.mountpoint, to: domain.mountpoint)
            try database.set(.options, to: domain.options)
            let value = try body(database)
            try database.close()
            return value
        } catch {
            try? database.close()
            throw error
        }
    }

    private static func domain(in salvage: Salvage) -> DomainSidecar? {
        salvage.text(.source).flatMap { source in
            source.isEmpty
                ? nil
                : DomainSidecar(
                    source: source, mountpoint: salvage.text(.mountpoint), options: salvage.text(.options))
        }
    }

    private mutating func readWhatIsLeft(in salvage: Salvage) {
        for row in salvage.rows(of: "deletion", by: "id") {
            findings.append(
                CheckFinding(
                    .tree, "it was removed here and the remote has not heard of that: it comes back",
                    name: row.text("baseName") ?? "", isMended: true))
        }
        for row in salvage.rows(of: "inode", by: "number") {
            if let number = row.integer("number"), number > 0 { inodes[number] = row }
        }
        items = salvage.rows(of: "item", by: "id")
        for item in items {
            guard let number = item.integer("inode"), let inode = inodes[number], Self.isDirty(item, inode) else {
                continue
            }
            dirty.insert(number)
        }
    }

    // MARK: - What is kept

    /// - Returns: how many items were kept.
    private mutating func insert(into database: ReplicaDatabase) throws -> Int {
        var children: [Int64: [SalvagedRow]] = [:]
        for item in items {
            guard let parent = item.integer("parent"), item.integer("inode") != 1 else { continue }
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
                guard let number = item.integer("inode"), let name = item.text("name"),
                    let inode = inodes[number], !kept.contains(number), let component = FilePath.Component(name),
                    FileProviderItem.defect(ofFilename: name) == nil
                else { continue }
                let place = path.appending(component)
                let isDirty = dirty.contains(number)
                try recover(item, inode, as: place)
                let isDirectory = inode.kind == .directory
                guard Self.isKnownToRemote(item), let identifier = item.text("identifier"),
                    identifiers.insert(identifier).inserted, names.insert(Array(name.utf8)).inserted
                else {
                    // Unsent content below it is recovered, too.
                    if isDirectory { try recoverAll(below: number, as: place, children, &kept) }
                    continue
                }
                let hasContent = try !isDirty && isIntact(inode)
                do {
                    try database.write { db in
                        // What was written is of no version of the remote's: it is the last one of those again.
                        let base = isDirty ? item : nil
                        try Self.insert(inode, base: base, hasContent: hasContent, columns.inode, in: db)
                        try Self.insert(item, isDirectory: isDirectory, columns.item, in: db)
                    }
                } catch let error as DatabaseError where Self.isAboutRow(error) {
                    // A damaged value: the remote tells of the item again, and its content is set aside.
                    note("its row is damaged: \(error.message ?? "\(error)")", number, place)
                    if isDirectory { try recoverAll(below: number, as: place, children, &kept) }
                    continue
                }
                kept.insert(number)
                if isDirectory { waiting.append((number, place)) }
            }
        }
        try leaveNumbersOut(of: database)
        return kept.count - 1
    }

    /// Nothing that is new may get the number of something that is lost.
    private func leaveNumbersOut(of database: ReplicaDatabase) throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: contents.directory.string).compactMap(
            Int64.init
        ).filter { $0 < Salvage.highestNumber }
        let highest = max(inodes.keys.max() ?? 1, files.max() ?? 1) + 1000
        try database.write { db in
            try db.execute(
                sql: "UPDATE sqlite_sequence SET seq = MAX(seq, ?) WHERE name = 'inode'", arguments: [highest])
        }
    }

    private static func isAboutRow(_ error: DatabaseError) -> Bool {
        switch error.resultCode.primaryResultCode {
        case .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_TOOBIG: true
        default: false
        }
    }

    private static func isKnownToRemote(_ item: SalvagedRow) -> Bool {
        let isLocal = item.isExcluded || item.integer("trashRole") ?? 0 != TrashRole.none.rawValue
        return !isLocal && item.integer("trashedAt") == nil && item.text("baseParent") != nil
            && item.text("baseName") != nil && item.changedFields.isDisjoint(with: [.filename, .parentItemIdentifier])
    }

    /// Whether this machine may have the only copy of what it contains.
    private static func isDirty(_ item: SalvagedRow, _ inode: SalvagedRow) -> Bool {
        return inode.kind == .file && inode.integer("hasContentFile") == 1
            && (item.changedFields.contains(.contents) || item.text("identifier") == nil
                || inode.integer("contentStamp") != nil)
    }

    /// Whether the content of a file is here whole, as its row says. A power cut keeps the length of a file and not its bytes.
    private func isIntact(_ inode: SalvagedRow) throws -> Bool {
        guard let number = inode.integer("number"), let size = inode.integer("size"),
            inode.kind == .file, inode.content == .materialized, inode.integer("hasContentFile") == 1,
            !mayMissBytes || inode.integer("isDurable") == 1
        else { return false }
        return (try? contents.status(of: InodeNumber(rawValue: number)).size) == size
    }

    private static func insert(
        _ row: SalvagedRow, base: SalvagedRow?, hasContent: Bool, _ columns: Set<String>, in db: Database
    ) throws {
        var values = row.values(in: columns)
        if let base {
            values["size"] = base["baseSize"]
            values["contentVersion"] = base["baseContentVersion"]
            if !base["baseModifiedAt"].isNull { values["modifiedAt"] = base["baseModifiedAt"] }
        }
        let kind = row.kind ?? .file
        let isEmpty = kind == .file && values["size"].flatMap { Int64.fromDatabaseValue($0) } == 0
        let isWhole = kind == .symbolicLink || hasContent || isEmpty
        values["content"] = (isWhole ? ContentState.materialized : .dataless).rawValue.databaseValue
        values["hasContentFile"] = (hasContent ? 1 : 0).databaseValue
        if !hasContent { values["localBytes"] = 0.databaseValue }
        values["linkCount"] = 1.databaseValue
        for name in ["subdirectories", "isIncomplete", "fetchAgain"] { values[name] = 0.databaseValue }
        values["contentStamp"] = .null
        try db.insertSalvaged(values, into: "inode")
    }

    private static func insert(
        _ row: SalvagedRow, isDirectory: Bool, _ columns: Set<String>, in db: Database
    ) throws {
        var values = row.values(in: columns)
        for name in ["changedFields", "wasSent", "attempts", "isDirectory"] {
            values[name] = 0.databaseValue
        }
        for name in ["pendingSince", "nextTry", "conflictOf"] { values[name] = .null }
        try db.insertSalvaged(values, into: "item")
        if isDirectory { try db.setIsDirectory(of: db.lastInsertedRowID, to: true) }
    }

    // MARK: - What is set aside

    private mutating func recoverAll(
        below number: Int64, as path: FilePath, _ children: [Int64: [SalvagedRow]], _ kept: inout Set<Int64>
    ) throws {
        var waiting = [(number, path)]
        while let (parent, path) = waiting.popLast() {
            guard kept.insert(parent).inserted else { continue }
            for item in children[parent] ?? [] {
                guard let number = item.integer("inode"), let name = item.text("name"),
                    let inode = inodes[number], let component = FilePath.Component(name)
                else { continue }
                try recover(item, inode, as: path.appending(component))
                if inode.kind == .directory { waiting.append((number, path.appending(component))) }
            }
        }
        kept.remove(number)
    }

    /// Sets aside what only this machine has of an item, and says what is lost.
    private mutating func recover(_ item: SalvagedRow, _ inode: SalvagedRow, as path: FilePath) throws {
        guard let number = inode.integer("number"), !item.isExcluded else { return }
        let isNew = item.text("identifier") == nil
        if dirty.contains(number) {
            written.append((number, path))
        } else if isNew, inode.kind == .symbolicLink, let target = inode.text("linkTarget") {
            let place = try makePlace(for: path, number)
            try FileManager.default.createSymbolicLink(atPath: place.string, withDestinationPath: target)
            note("it was not on the remote, and is '\(place)'", number, path)
        } else if isNew, inode.kind == .directory {
            let place = try makePlace(for: path, number)
            try FileManager.default.createDirectory(atPath: place.string, withIntermediateDirectories: true)
            note("it was not on the remote, and is '\(place)'", number, path)
        }
        let lost = item.changedFields.subtracting([.contents, .contentModificationDate])
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

    /// A free place below the folder for what was written here; the number of the inode where the path is longer than system calls take.
    private func makePlace(for path: FilePath, _ number: Int64) throws -> FilePath {
        let folder = contents.recovered.appending("written-\(stamp)")
        let named = folder.pushing(path)
        let place = named.string.utf8.count < Self.longestPath ? named : folder.appending(number.description)
        try FileManager.default.createDirectory(
            atPath: place.removingLastComponent().string, withIntermediateDirectories: true)
        let isTaken = FileManager.default.fileExists(atPath: place.string)
        return isTaken ? FilePath(place.string + "-\(number)") : place
    }

    /// Less than PATH_MAX, by a number that may follow.
    private static let longestPath = 4096 - 32

    /// Moves what was written here out of the contents, to where it was below a folder of its own.
    private mutating func recover(_ number: Int64, as path: FilePath) throws {
        let source = contents.path(of: InodeNumber(rawValue: number))
        guard FileManager.default.fileExists(atPath: source.string) else { return }
        let place = try makePlace(for: path, number)
        try source.move(to: place)
        note("what was written to it and was not on the remote is '\(place)'", number, path)
    }
}
