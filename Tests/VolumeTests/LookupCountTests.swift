import FileProvider
import Replica
import ReplicaTestSupport
import Testing
import Volume

/// Inodes that have no name any more, and the kernel's FORGET.
@Suite struct LookupCountTests: VolumeSuite {
    let own: VolumeFixture

    init() throws { own = try VolumeFixture() }

    private func settle(_ node: UInt64) async throws {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        _ = try await replica.ingest(open: volume.openInodes) { try $0.versions.settle(number) }
    }

    @Test("OPEN-2: an inode stays until every lookup of it is forgotten", arguments: [UInt32(0o100644), 0o040755])
    func staysUntilForgotten(mode: UInt32) async throws {
        try await replica.list([], open: fixture.open)
        let made = try volume.make("a", in: 1, mode: mode, caller: caller)
        volume.noteLookup(of: [made.node])
        volume.noteLookup(of: [made.node])
        if mode & 0o040000 != 0 {
            try volume.removeDirectory("a", in: 1)
        } else {
            try volume.unlink("a", in: 1)
        }
        try await settle(made.node)
        #expect(try volume.attributes(of: made.node).linkCount == 0)
        volume.forget(made.node, lookups: 1)
        #expect(closed.numbers.isEmpty)
        volume.forget(made.node, lookups: 1)
        #expect(closed.numbers.map { UInt64(bitPattern: $0.rawValue) } == [made.node])
        try await settle(made.node)
        #expect(try replica.database.inode(closed.numbers[0]) == nil)
        #expect(fixture.contentFiles.isEmpty)
        #expect(try replica.database.defects() == [])
    }

    @Test("OPEN-2: forgetting what has a name costs nothing and keeps nothing in memory") func namedInodes()
        async throws
    {
        try await replica.list((0..<1000).map { .file("f\($0)") }, open: fixture.open)
        let nodes = try volume.entries(of: 1, after: 0, limit: 1000, isProvided: false).map(\.attributes.node)
        volume.noteLookup(of: nodes)
        #expect(volume.knownCount == 1000)
        for node in nodes { volume.forget(node, lookups: 1) }
        #expect(volume.knownCount == 0)
        #expect(closed.numbers.isEmpty)
        // More than was given, as after a reply that the kernel never got.
        volume.forget(nodes[0], lookups: 5)
        #expect(try volume.attributes(of: nodes[0]).linkCount == 1)
    }

    @Test("OPEN-2: an inode that is closed before it is forgotten goes when it is, and the other way round")
    func closedAndForgotten() async throws {
        try await replica.list([.file("a"), .file("b")], open: fixture.open)
        for (name, forgetsFirst) in [("a", true), ("b", false)] {
            let node = try volume.lookup(name, in: 1).node
            volume.noteLookup(of: [node])
            _ = try volume.open(node, for: .reading, caller: caller, registry: nil)
            try volume.unlink(name, in: 1)
            if forgetsFirst { volume.forget(node, lookups: 1) }
            volume.close(node, wasWriting: false, registry: nil)
            try await settle(node)
            let number = InodeNumber(rawValue: Int64(bitPattern: node))
            #expect(try (replica.database.inode(number) == nil) == forgetsFirst)
            if !forgetsFirst {
                volume.forget(node, lookups: 1)
                try await settle(node)
            }
            #expect(try replica.database.inode(number) == nil)
        }
    }
}
