import FileProvider
import ReplicaTestSupport
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// The copy of the truth that `NewFiles` keeps in memory agrees with itself after every step.
@Suite("invariants of new files") struct NewFilesInvariantTests {
    @Test(
        "random creations, transactions, failures and lookups violate no invariant", arguments: [1, 2, 3] as [UInt64])
    func randomStepsKeepTheInvariants(seed: UInt64) throws {
        var numbers = SeededNumbers(seed: seed)
        let fixture = try ReplicaFixture()
        let path = fixture.directory.appending("log")
        let files = NewFiles()
        files.begin(try NewFileLog.open(at: path, of: "test").log, after: 0)
        defer { files.close() }
        files.reserve(100..<200)
        let directories = (10...12).map { InodeNumber(rawValue: $0) }
        var claims = 0
        var point: NewFiles.QueryPoint?
        var added = 0
        var changes = 0
        var last = InodeNumber.root
        var nextReserved: Int64 = 200
        for step in 0..<3000 {
            let directory = directories.randomElement(using: &numbers) ?? .root
            let name = "name \(Int.random(in: 0..<40, using: &numbers))"
            switch Int.random(in: 0..<13, using: &numbers) {
            case 0...4:
                guard let ticket = files.ticket() else {
                    files.reserve(nextReserved..<(nextReserved + 50))
                    nextReserved += 50
                    break
                }
                if Self.add(name, in: directory, ticket, to: files) {
                    added += 1
                    last = ticket.number
                }
            case 5 where claims == 0:
                files.claim()
                claims += 1
            case 6 where claims > 0:
                files.release()
                claims -= 1
            case 5...7:
                _ = files.take()
                files.wrote()
            case 8:
                _ = files.take()
                files.putBack()
            case 9:
                point = files.beginQuery()
            case 10:
                if let point, !files.holds(name, in: directory) { files.noteAbsence(of: name, in: directory, point) }
            case 11:
                let changed = files.change(last, for: nil) { creation in
                    creation.new.permissions = 0o600
                    return true
                }
                if let changed {
                    changes += 1
                    try #require(files.inode(last) == changed && changed.permissions == 0o600)
                }
            default:
                if let point = files.beginQuery(at: directory) { files.endQuery(point, at: directory, names: []) }
            }
            let violations = files.violations()
            try #require(violations.isEmpty, "seed \(seed), step \(step): \(violations)")
        }
        #expect(added > 50 && changes > 5)
    }

    private static func add(
        _ name: String, in directory: InodeNumber, _ ticket: NewFiles.Ticket, to files: NewFiles
    ) -> Bool {
        let creation = Creation(
            item: NewItem(kind: .file, name: name, parent: directory, capabilities: .ordinary, madeAt: .now),
            new: NewInode(kind: .file, permissions: 0o644), owner: 0, group: 0, isWritten: true)
        let inode = Creation(
            item: NewItem(kind: .directory, name: "d", parent: .root, capabilities: .ordinary, madeAt: .now),
            new: NewInode(kind: .directory, permissions: 0o755), owner: 0, group: 0, isWritten: false
        ).inode(directory)
        let record = DirectoryRecord(
            inode: inode, capabilities: .ordinary, changedFields: [], exclusion: .none, trashRole: .none)
        return files.add(
            creation, by: CreationRules(directory: record, capabilities: .ordinary, era: ticket.era), ticket) != nil
    }
}
