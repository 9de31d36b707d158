import FileProvider
import ReplicaTestSupport
import SystemPackage
import Testing

@testable import Replica
@testable import Volume

/// Sizes and offsets near the end of 64 bits, as a process or a database gives them.
@Suite struct LargeSizeTests {
    let fixture: ReplicaFixture
    let replica: Replica
    let volume: Volume
    let caller = Requester(processIdentifier: 1, userIdentifier: 0, groupIdentifier: 0)

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
        volume = try .make(replica, user: 0, group: 0, observer: ClosedInodes())
    }

    @Test("WRITE-7: sizes and offsets beyond 2^62 are EFBIG, for truncate, write and fallocate")
    func sizesBeyondTheLimitAreRefused() async throws {
        try await replica.list([], open: fixture.open)
        let (attributes, _) = try volume.create(
            "a", in: 1, permissions: 0o644, isWriting: true, caller: caller, registry: nil)
        let (node, limit) = (attributes.node, FileProviderItem.maximumDocumentSize)
        for size in [limit + 1, Int64.max] {
            #expect(
                errno { try volume.setAttributes(of: node, to: LocalAttributes(size: size), caller: caller) }
                    == .fileTooLarge)
            #expect(
                errno { try volume.writing(node, at: size, count: 1, caller: caller) }
                    == .fileTooLarge)
            #expect(
                errno { try volume.allocate(node, mode: 0, offset: size, length: 1) }
                    == .fileTooLarge)
            #expect(
                errno { try volume.allocate(node, mode: 0, offset: 1, length: size) }
                    == .fileTooLarge)
        }
        #expect(
            errno { try volume.writing(node, at: limit, count: 1, caller: caller) }
                == .fileTooLarge)
        #expect(
            errno { try volume.writing(node, at: -1, count: 1, caller: caller) }
                == .invalidArgument)
        #expect(try volume.attributes(of: node).size == 0)
        volume.close(node, wasWriting: true, registry: nil)
    }

    @Test("WRITE-7: a size of 2^63-1 that the database holds already is shown, opened and read without a crash")
    func storedSizeIsShown() async throws {
        try await replica.list([.file("a")], open: fixture.open)
        // As an older version may have taken it in.
        try await fixture.sabotage("UPDATE inode SET size = 9223372036854775807 WHERE kind = 1")
        let shown = try volume.lookup("a", in: 1)
        #expect(shown.size == .max)
        #expect(shown.blocks > 0)
        _ = try volume.open(shown.node, for: .reading, caller: caller, registry: nil)
        for offset in [0, Int64.max - 4096, Int64.max - 1] {
            #expect(
                prerequisite { try volume.read(shown.node, at: offset, count: 1 << 20, isProvided: false) } != nil,
                "at \(offset)")
        }
        volume.close(shown.node, wasWriting: false, registry: nil)
    }

    @Test("WRITE-7: the blocks of a whole file of 2^63-1 bytes are counted without a crash") func blocksAreCounted()
        throws
    {
        var inode = InodeRecord(
            number: InodeNumber(rawValue: 2), kind: .file, size: .max, permissions: nil, owner: nil, group: nil,
            linkCount: 1, modifiedAt: FileTimestamp(nanosecondsSince1970: 0),
            changedAt: FileTimestamp(nanosecondsSince1970: 0), createdAt: FileTimestamp(nanosecondsSince1970: 0),
            accessedAt: nil, device: 0, subdirectories: 0, content: .materialized, contentVersion: [],
            contentGeneration: 0, localBytes: .max, contentStamp: nil)
        #expect(Attributes(inode, ownership: Ownership(user: 0, group: 0)).blocks == 1 << 54)
        // Content files take whole pages.
        inode.size = 4097
        #expect(Attributes(inode, ownership: Ownership(user: 0, group: 0)).blocks == 16)
        inode.size = 4096
        #expect(Attributes(inode, ownership: Ownership(user: 0, group: 0)).blocks == 8)
    }
}
