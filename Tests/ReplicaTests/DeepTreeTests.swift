import FileProvider
import Foundation
import GRDB
import ReplicaTestSupport
import Syscalls
import SystemPackage
import Testing

@testable import Replica

/// Trees that are deeper than any path, and too deep for a recursive function.
@Suite struct DeepTreeTests {
    private let fixture: ReplicaFixture
    private let replica: Replica

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    /// Makes directories of the remote, each in the one before and the first in the root.
    ///
    /// - Returns: the deepest one.
    private func makeTree(depth: Int, named name: String = "d") async throws -> InodeNumber {
        try await replica.list([], open: fixture.open)
        return try await replica.database.write { db in
            var number = InodeNumber.root
            for level in 0..<depth {
                let item = FileProviderItem.directory(
                    name, id: "\(level)", in: level == 0 ? .rootContainer : ItemIdentifier("\(level - 1)"))
                let made = try db.insertInode(of: item, at: FileTimestamp.now)
                _ = try db.insert(item, of: made, in: number, named: name)
                try db.makeListed(made, comparison: .none)
                number = made
            }
            return number
        }
    }

    private func makeDirectory(_ name: String, in parent: InodeNumber) throws {
        _ = try replica.change(open: fixture.open) {
            try $0.names.create(
                name, in: parent, NewInode(kind: .directory, permissions: 0o755),
                caller: LocalCaller(user: 0, group: 0), usualGroup: 0)
        }
    }

    @Test("CONFLICT-2: what was made here deep in a tree is kept when the remote removes the tree")
    func keepsWork() async throws {
        let deepest = try await makeTree(depth: 5000)
        try makeDirectory("new", in: deepest)
        _ = try await replica.ingest(open: fixture.open) { try $0.changes.vanish(["0"]) }
        #expect(try replica.database.item(named: "new", in: deepest) != nil)
        let directory = try #require(try replica.database.item(ofInode: deepest))
        #expect(directory.identifier == nil && directory.parent != nil)
        #expect(try replica.database.item("0") == nil)
        #expect(try replica.names() == ["d"])
    }

    @Test("a deep tree is counted as missing, removed here, and given up in a reimport")
    func removedAndGivenUp() async throws {
        let depth = 15_000
        let deepest = try await makeTree(depth: depth)
        let file = FileProviderItem.file("f", in: ItemIdentifier("\(depth - 1)"))
        try await replica.database.write { db in
            _ = try db.insert(file, of: db.insertInode(of: file, at: FileTimestamp.now), in: deepest, named: "f")
        }
        #expect(try replica.database.countFoundElsewhere(["0"], settled: nil, begun: 0) == 0)
        _ = try replica.change(open: fixture.open) { try $0.items.delete("0") }
        #expect(try replica.names().isEmpty)
        try await replica.beginReimport(below: .root)
        let given = try replica.database.one(
            "SELECT COUNT(*) FROM deletion WHERE isToBeFound = 1", [], { $0[0] as Int })
        #expect(given == depth + 1)
    }

    @Test("CHECK-4: what was written under a path that is too long for a system call is set aside in a rebuild")
    func setAside() async throws {
        try replica.database.set(.source, to: "memory:remote")
        try DomainSidecar(source: "memory:remote", mountpoint: nil, options: nil).write(in: fixture.directory)
        let deepest = try await makeTree(depth: 20, named: String(repeating: "d", count: 250))
        let (made, _) = try replica.change(open: fixture.open) {
            try $0.names.createFile(
                "new", in: deepest, permissions: 0o644, caller: LocalCaller(user: 0, group: 0), usualGroup: 0)
        }
        try made.content.writeAll(Array("unsent".utf8).span.bytes, at: 0)
        try made.content.close()
        try replica.close()
        // The database cannot be written anew with all of its rows.
        try await fixture.sabotage(
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = replace(sql, 'kind BETWEEN 1 AND 7', 'kind BETWEEN 1 AND 3') WHERE name = 'inode';
            """)
        _ = try ReplicaRebuild.run(in: fixture.directory, logger: DamagedReplica.logger)
        let recovered = fixture.directory.appending("recovered").string
        let names = FileManager.default.enumerator(atPath: recovered)?.compactMap { $0 as? String } ?? []
        #expect(names.contains { FileManager.default.contents(atPath: "\(recovered)/\($0)") == Data("unsent".utf8) })
    }
}
