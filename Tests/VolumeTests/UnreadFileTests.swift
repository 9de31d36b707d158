import FileProvider
import Foundation
import Replica
import ReplicaTestSupport
import Synchronization
import Syscalls
import SystemPackage
import Testing
import Volume

/// Open files that no process has read from, and what the kernel knows of their sizes.
@Suite struct UnreadFileTests: VolumeSuite {
    private final class Counter: Sendable {
        private let value = Atomic(0)
        var count: Int { value.load(ordering: .relaxed) }
        func increment() { value.add(1, ordering: .relaxed) }
    }

    let own: VolumeFixture

    init() throws { own = try VolumeFixture() }

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
            #expect(try read(node, unreadSize: second).isLonger)
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

    /// What the kernel is told: the size, and behind all that it may have requested.
    private func told(_ node: UInt64) -> [Int64] {
        var told: [Int64] = []
        volume.tellSize(of: node) { size, end, _ in told = [size, end] }
        return told
    }

    @Test("OPEN-1: the kernel is told no size by a page that it may request because it has the attributes")
    func askedForAttributes() async throws {
        let node = try await open()
        defer { volume.close(node, wasWriting: false, registry: nil) }
        try await change(to: 300_000)
        try await replica.fill(number(node))
        #expect(try volume.attributes(of: node).size == 300_000)
        #expect(try read(node, unreadSize: volume.unreadSize(of: node, readingTo: 131_072)).isLonger)
        #expect(told(node) == [300_000, 300_000])
        #expect(told(node) == [])
    }

    @Test("OPEN-1: nor by one that is requested after the first read and before the kernel is told")
    func requestedMeanwhile() async throws {
        let node = try await open()
        defer { volume.close(node, wasWriting: false, registry: nil) }
        try await change(to: 300_000)
        try await replica.fill(number(node))
        #expect(try read(node, unreadSize: volume.unreadSize(of: node, readingTo: 131_072)).isLonger)
        let last = try read(node, at: 262_144)
        #expect(last.isLonger && last.reachesEnd)
        #expect(told(node) == [300_000, 393_216])
    }

    @Test(
        "OPEN-1: where the kernel may have the size of an earlier version, it asks for the size, and reads the end again"
    )
    func openedBeforeTheInvalidation() async throws {
        let node = try await open()
        defer { volume.close(node, wasWriting: false, registry: nil) }
        try await replica.fill(number(node))
        let size = volume.unreadSize(of: node, readingTo: 131_072) { true }
        #expect(size == Int64.max)
        #expect(errno { try read(node, unreadSize: size) } == .staleNFSFileHandle)
        let again = try read(node)
        #expect(again.count == 100_000)
        #expect(again.isLonger)
        #expect(told(node) == [100_000, 131_072])
        #expect(try !read(node).isLonger)
    }

    @Test("OPEN-1: a change after the first request came does not put the size of the open in doubt")
    func invalidatedAfterTheFirstRequest() async throws {
        let node = try await open()
        defer { volume.close(node, wasWriting: false, registry: nil) }
        #expect(volume.unreadSize(of: node, readingTo: 4096) { false } == 100_000)
        #expect(volume.unreadSize(of: node, readingTo: 8192) { true } == 100_000)
    }

    @Test("OPEN-1: the attributes of a file are not answered while the kernel is told its size")
    func attributesMeanwhile() async throws {
        let node = try await open()
        defer { volume.close(node, wasWriting: false, registry: nil) }
        try await change(to: 300_000)
        try await replica.fill(number(node))
        #expect(try read(node, unreadSize: volume.unreadSize(of: node, readingTo: 131_072)).isLonger)
        let answers = Counter()
        var asking: Task<Void, Never>?
        volume.tellSize(of: node) { _, _, _ in
            asking = Task.detached { [volume] in
                _ = try? volume.attributes(of: node)
                answers.increment()
            }
            Thread.sleep(forTimeInterval: 0.05)
            #expect(answers.count == 0)
            // A reader goes on: the kernel may wait for it.
            let grant = try? read(node, at: 4096)
            #expect(grant?.count == 131_072 && grant?.reachesEnd == false)
        }
        await asking?.value
        #expect(answers.count == 1)
    }

    @Test("OPEN-1: a first read is a request: the kernel drops its pages of a file that may get another version before")
    func pagesOfEarlierOpens() async throws {
        let node = try await open()
        let close = { [volume] in volume.close(node, wasWriting: false, registry: nil) }
        close()
        #expect(try volume.open(node, for: .reading, caller: caller, registry: nil) == .cachedAnew)
        close()

        try await replica.fill(number(node))
        #expect(try volume.open(node, for: .reading, caller: caller, registry: nil) == .cached)
        close()
        let late = try volume.open(node, for: .reading, caller: caller, registry: nil, isInvalidating: { true })
        #expect(late == .cachedAnew)
        close()
    }

    @Test(
        "OPEN-1: so does an open at the same time: the process that was the first may not have dropped them",
        arguments: [false, true])
    func pagesOfOpensAtTheSameTime(isHere: Bool) async throws {
        let node = try await open()
        let close = { [volume] in volume.close(node, wasWriting: false, registry: nil) }
        if isHere {
            close()
            try await replica.fill(number(node))
            // The kernel has pages of an earlier version.
            let first = try volume.open(node, for: .reading, caller: caller, registry: nil, isInvalidating: { true })
            #expect(first == .cachedAnew)
        }
        #expect(try volume.open(node, for: .reading, caller: caller, registry: nil) == .cachedAnew)
        if !isHere {
            try await change(to: 50_000)
            #expect(try volume.open(node, for: .reading, caller: caller, registry: nil) == .cachedAnew)
            #expect(
                prerequisite { try read(node, count: 4096, isProvided: false) }
                    == .content(of: number(node), version: Array("2".utf8), range: 0..<4096))
            close()
        } else {
            #expect(try read(node, count: 4096).count == 4096)
        }
        // The process that reads has dropped them. This one would wait for the answer.
        #expect(try volume.open(node, for: .reading, caller: caller, registry: nil) == .cached)
        for _ in 0..<3 { close() }
        #expect(!volume.openInodes.isOpen(number(node)))
    }

    @Test("OPEN-1: a process that writes to a file that no process has read from reads no pages of earlier opens")
    func pagesOfAWriter() async throws {
        let node = try await open()
        defer { volume.close(node, wasWriting: false, registry: nil) }
        try await change(to: 50_000)
        try await replica.fill(number(node))
        let writing = OpenIntent(isWriting: true, isTruncating: false)
        #expect(try volume.open(node, for: writing, caller: caller, registry: nil) == .cachedAnew)
        volume.close(node, wasWriting: true, registry: nil)
    }

    @Test("OPEN-3: an open of a version that the remote has replaced is ESTALE, so that the kernel looks the name up")
    func openOfAnOldVersion() async throws {
        let node = try await open()
        let close = { [volume] in volume.close(node, wasWriting: false, registry: nil) }
        try await replica.fill(number(node), 0..<4096)
        #expect(try read(node, count: 4096, isProvided: false).count == 4096)
        try await change(to: 20)
        #expect(errno { try volume.open(node, for: .reading, caller: caller, registry: nil) } == .staleNFSFileHandle)
        // The process that was there before reads on.
        #expect(try read(node, count: 4096, isProvided: false).count == 4096)
        close()
        #expect(errno { try volume.open(node, for: .reading, caller: caller, registry: nil) } == .staleNFSFileHandle)
        #expect(!volume.openInodes.isOpen(number(node)))

        let newest = try volume.lookup("a", in: 1).node
        #expect(newest != node)
        try await replica.fill(number(newest))
        _ = try volume.open(newest, for: .reading, caller: caller, registry: nil)
        try await replica.change([.file("a", size: 30, version: "3")], open: volume.openInodes)
        #expect(try volume.lookup("a", in: 1).node != newest)
        #expect(try volume.open(newest, for: .reading, caller: caller, registry: nil) == .cached)
        for _ in 0..<2 { volume.close(newest, wasWriting: false, registry: nil) }
    }

    @Test("OPEN-1: READ-6: a file has no holes before its first read, which may take another version")
    func holes() async throws {
        let node = try await open()
        defer { volume.close(node, wasWriting: false, registry: nil) }
        // Nothing is written to its content file, which is one hole.
        let beginning = try await replica.beginContent(of: number(node), version: nil)
        try beginning.descriptor.close()
        _ = try await replica.recordContent(
            of: number(node), generation: beginning.generation, ranges: ByteRanges([0..<100_000]))
        #expect(try volume.seek(to: .data, in: node, from: 0) == 0)
        #expect(try volume.seek(to: .hole, in: node, from: 0) == 100_000)
        _ = try read(node, count: 4096)
        #expect(try volume.seek(to: .hole, in: node, from: 0) == 0)
    }

    @Test("OPEN-1: a file that a process has opened for writing tells no size: the kernel may have made it longer")
    func writtenMeanwhile() async throws {
        let node = try await open()
        defer { volume.close(node, wasWriting: false, registry: nil) }
        try await change(to: 300_000)
        try await replica.fill(number(node))
        #expect(try read(node, unreadSize: volume.unreadSize(of: node, readingTo: 131_072)).isLonger)
        _ = try volume.open(
            node, for: OpenIntent(isWriting: true, isTruncating: false), caller: caller, registry: nil)
        defer { volume.close(node, wasWriting: true, registry: nil) }
        #expect(told(node) == [])
    }
}
