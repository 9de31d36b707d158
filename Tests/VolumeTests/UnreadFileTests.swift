import FileProvider
import Replica
import ReplicaTestSupport
import SystemPackage
import Testing
import Volume

/// Open files that no process has read from, and what the kernel knows of their sizes.
@Suite struct UnreadFileTests {
    private let fixture: ReplicaFixture
    private let replica: Replica
    private let volume: Volume
    private let caller = Requester(processIdentifier: 1, userIdentifier: 7, groupIdentifier: 8)

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
        volume = try .make(replica, observer: ClosedInodes())
    }

    /// Opens a dataless file of 100,000 bytes.
    private func open() async throws -> UInt64 {
        try await replica.list([.file("a", size: 100_000, version: "1")], open: volume.openInodes)
        let node = try volume.lookup("a", in: 1).node
        _ = try volume.open(node, for: .reading, caller: caller, registry: nil)
        return node
    }

    /// The file has another size on the remote.
    private func change(to size: Int64) async throws {
        try await replica.change([.file("a", size: size, version: "2")], open: volume.openInodes)
    }

    private func number(_ node: UInt64) -> InodeNumber { InodeNumber(rawValue: Int64(bitPattern: node)) }

    private func read(
        _ node: UInt64, at offset: Int64 = 0, count: Int = 131_072, isProvided: Bool = true, unreadSize: Int64? = nil
    ) throws(VolumeError) -> ReadGrant {
        try volume.read(node, at: offset, count: count, isProvided: isProvided, unreadSize: unreadSize)
    }

    @Test(
        "OPEN-1: a request that comes while the first read waits for the new version has the old size",
        arguments: [20, 300_000])
    func requestDuringTheFirstRead(_ size: Int64) async throws {
        let node = try await open()
        defer { volume.close(node, wasWriting: false, registry: nil) }
        try await change(to: size)
        let first = volume.unreadSize(of: node, readingTo: 4096)
        let wanted = Prerequisite.content(
            of: number(node), version: Array("2".utf8), range: 0..<min(size, 4096))
        #expect(prerequisite { try read(node, count: 4096, isProvided: false, unreadSize: first) } == wanted)

        let second = volume.unreadSize(of: node, readingTo: 131_072)
        #expect(second == 100_000)
        try await replica.fill(number(node))
        if size < 100_000 {
            #expect(errno { try read(node, unreadSize: second) } == .staleNFSFileHandle)
            #expect(errno { try read(node, count: 4096, unreadSize: first) } == .staleNFSFileHandle)
            #expect(try read(node).count == Int(size))
        } else {
            #expect(try read(node, unreadSize: second).newSize == size)
        }
    }

    @Test("OPEN-1: a request that comes after the first read of a shorter version has the old size, too")
    func requestAfterTheFirstRead() async throws {
        let node = try await open()
        defer { volume.close(node, wasWriting: false, registry: nil) }
        try await change(to: 50_000)
        try await replica.fill(number(node))
        #expect(try read(node, count: 4096, unreadSize: volume.unreadSize(of: node, readingTo: 4096)).count == 4096)
        #expect(volume.unreadSize(of: node, readingTo: 131_072) == nil)
        #expect(errno { try read(node) } == .staleNFSFileHandle)
        #expect(try read(node).count == 50_000)
    }
}
