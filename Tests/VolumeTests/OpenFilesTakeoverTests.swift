import FileProvider
import Replica
import ReplicaTestSupport
import Synchronization
import Syscalls
import SystemPackage
import Testing
import Volume

/// A volume that continues with the open files of one whose process was killed.
@Suite struct OpenFilesTakeoverTests {
    let fixture: ReplicaFixture
    let replica: Replica
    let closed = ClosedInodes()
    let registry = BackingFiles()
    let caller = Requester(processIdentifier: 1, userIdentifier: 7, groupIdentifier: 8)
    let writing = OpenIntent(isWriting: true, isTruncating: false)

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    private func firstVolume() throws -> (Volume, OpenFiles) {
        let files = try OpenFiles()
        return (try .make(replica, observer: closed, files: files), files)
    }

    /// The volume of the next process, which inherits the table and the replica, and no descriptor.
    private func nextVolume(_ files: OpenFiles) throws -> (Volume, OpenFiles, closing: [UInt64]) {
        let next = OpenFiles(table: try HandleTable.adopt(files.tableDescriptor.duplicate()))
        let volume = try Volume.make(replica, observer: closed, files: next)
        return (volume, next, try volume.restoreOpenFiles())
    }

    private func text(_ volume: Volume, _ node: UInt64) throws -> [UInt8] {
        let grant = try volume.read(node, at: 0, count: 100, isProvided: false)
        guard let descriptor = grant.descriptor else { return [] }
        var bytes = [UInt8](repeating: 0, count: grant.count)
        let count = try bytes.withUnsafeMutableBytes {
            try descriptor.descriptor.read(fromAbsoluteOffset: grant.offset, into: $0)
        }
        return Array(bytes.prefix(count))
    }

    @Test("a description of a mount for which the table has no room is refused, as that of one on a path of 4000 bytes")
    func longDescription() throws {
        let files = try OpenFiles()
        let longest = [UInt8](repeating: 1, count: 4096)
        try files.setMountDescription(longest)
        #expect(throws: Errno.fileNameTooLong) { try files.setMountDescription([UInt8](repeating: 2, count: 4097)) }
        #expect(files.mountDescription == longest)
    }

    @Test("a file that is open keeps its version, its backing file and its content in the next process")
    func restoresReaders() async throws {
        let (volume, files) = try firstVolume()
        try await replica.list(
            [.file("here", size: 3), .file("away", size: 3), .file("gone", size: 3), .file("late", size: 3)],
            open: files)
        let nodes = try ["here", "away", "gone", "late"].map { try volume.lookup($0, in: 1).node }
        for node in [nodes[0], nodes[2], nodes[3]] { try await replica.fill(InodeNumber(rawValue: Int64(node))) }
        try files.setMountDescription(Array("a mount".utf8))
        let grants = try nodes.map { try volume.open($0, for: .reading, caller: caller, registry: registry) }
        #expect(grants == [.passthrough(backing: 1), .cachedAnew, .passthrough(backing: 2), .passthrough(backing: 3)])
        try volume.unlink("gone", in: 1)
        try await replica.change([.file("here", size: 5, version: "2")], open: files)

        let (next, nextFiles, closing) = try nextVolume(files)
        #expect(closing.isEmpty)
        #expect(nextFiles.mountDescription == Array("a mount".utf8))
        #expect(Set(next.openNumbers) == Set(nodes.map { InodeNumber(rawValue: Int64($0)) }))
        #expect(try next.lookup("here", in: 1).node != nodes[0])
        #expect(try text(next, nodes[0]) == [7, 7, 7])
        #expect(try text(next, nodes[2]) == [7, 7, 7])
        try await replica.change([.file("late", size: 5, version: "2")], open: nextFiles)
        #expect(try next.lookup("late", in: 1).node != nodes[3])
        #expect(try text(next, nodes[3]) == [7, 7, 7])
        // All opens of an inode share one backing file, also across processes.
        #expect(try next.open(nodes[0], for: .reading, caller: caller, registry: registry) == .passthrough(backing: 1))
        // No process has read from it: it follows the remote.
        #expect(!nextFiles.isOpenAndUsed(InodeNumber(rawValue: Int64(nodes[1]))))
        // Its process may not have dropped the kernel's pages of earlier opens.
        #expect(try next.open(nodes[1], for: .reading, caller: caller, registry: registry) == .cachedAnew)
        next.close(nodes[1], wasWriting: false, registry: registry)
        try await replica.change([.file("away", size: 9, version: "2")], open: nextFiles)
        #expect(try next.lookup("away", in: 1).node == nodes[1])
        for node in nodes + [nodes[0]] {
            next.close(node, wasWriting: false, registry: registry)
        }
        #expect(next.openNumbers.isEmpty)
        #expect(registry.unregistered.sorted() == [1, 2, 3])
        #expect(Set(closed.numbers.map { UInt64($0.rawValue) }) == Set(nodes))
    }

    @Test("a file open for writing takes writes in the next process, which records a close that was answered")
    func restoresWriters() async throws {
        let (volume, files) = try firstVolume()
        try await replica.list([], open: files)
        let made = try volume.create(
            "a", in: 1, permissions: 0o644, isWriting: true, caller: caller, registry: nil
        ).attributes.node
        _ = try volume.open(made, for: writing, caller: caller, registry: nil)
        try volume.writing(made, caller: nil).descriptor.writeAll(([1, 2, 3] as [UInt8]).span.bytes, at: 0)
        #expect(volume.noteClosing(made, request: RequestNumber(rawValue: 10)))

        let (next, nextFiles, closing) = try nextVolume(files)
        #expect(closing == [made])
        #expect(try text(next, made) == [1, 2, 3])
        #expect(nextFiles.isOpenForWriting(InodeNumber(rawValue: Int64(made))))
        // The kernel sends the RELEASE again, because its answer was lost.
        #expect(!next.noteClosing(made, request: RequestNumber(rawValue: 10, isResent: true)))
        #expect(next.closeWritten(closing, registry: nil).isEmpty)
        #expect(next.openNumbers.count == 1)
        try next.writing(made, caller: nil).descriptor.writeAll(([4] as [UInt8]).span.bytes, at: 3)
        #expect(next.noteClosing(made, request: RequestNumber(rawValue: 12)))
        #expect(next.closeWritten([made], registry: nil).isEmpty)
        #expect(next.openNumbers.isEmpty)
        #expect(try next.attributes(of: made).size == 4)
        // Also after the last close.
        #expect(!next.noteClosing(made, request: RequestNumber(rawValue: 12, isResent: true)))
    }

    @Test("a request that the kernel sends again is counted once") func countsOnce() async throws {
        let (volume, files) = try firstVolume()
        try await replica.list([.file("a", size: 3)], open: files)
        let node = try volume.lookup("a", in: 1).node
        try await replica.fill(InodeNumber(rawValue: Int64(node)))
        func request(_ number: UInt64, again: Bool = false) -> RequestNumber {
            RequestNumber(rawValue: number, isResent: again)
        }
        volume.noteLookup(of: [node], request: request(2))
        let grant = try volume.open(node, for: .reading, caller: caller, registry: registry, request: request(4))
        // CREATE counts a handle and a lookup by one number.
        volume.noteLookup(of: [node], request: request(4))

        let (next, nextFiles, _) = try nextVolume(files)
        next.noteLookup(of: [node], request: request(2, again: true))
        #expect(
            try next.open(node, for: .reading, caller: caller, registry: registry, request: request(4, again: true))
                == grant)
        next.noteLookup(of: [node], request: request(4, again: true))
        next.forget(node, lookups: 1)
        #expect(next.knownCount == 1)
        // A request that is sent again, fails and is tried once more.
        next.undoOpen(node, wasWriting: false, registry: registry, request: request(4, again: true))
        #expect(next.openNumbers.isEmpty)
        _ = try next.open(node, for: .reading, caller: caller, registry: registry, request: request(4, again: true))
        next.forget(node, lookups: 1, undoing: request(4, again: true))
        #expect(next.knownCount == 0)
        next.noteLookup(of: [node], request: request(4, again: true))
        #expect(next.knownCount == 1)
        _ = try next.open(node, for: .reading, caller: caller, registry: registry, request: request(6))
        next.close(node, wasWriting: false, registry: registry, request: request(8))

        let (last, _, _) = try nextVolume(nextFiles)
        last.close(node, wasWriting: false, registry: registry, request: request(8, again: true))
        #expect(last.openNumbers.count == 1)
        last.close(node, wasWriting: false, registry: registry, request: request(10))
        #expect(last.openNumbers.isEmpty)
        last.close(node, wasWriting: false, registry: registry, request: request(10, again: true))
        #expect(closed.numbers.count == 2)
    }

    @Test("a file without a name that only the kernel knows is removed with its last lookup in the next process")
    func restoresNameless() async throws {
        let (volume, files) = try firstVolume()
        try await replica.list([], open: files)
        let node = try volume.make("a", in: 1, mode: 0o100644, caller: caller).node
        volume.noteLookup(of: [node], request: RequestNumber(rawValue: 2))
        try volume.unlink("a", in: 1)
        let (next, _, _) = try nextVolume(files)
        #expect(try next.attributes(of: node).linkCount == 0)
        #expect(closed.numbers.isEmpty)
        next.forget(node, lookups: 1)
        #expect(closed.numbers.map { UInt64($0.rawValue) } == [node])
    }
}

/// Numbers backing files, as the kernel does.
final class BackingFiles: PassthroughRegistry {
    private let state = Mutex<(last: Int32, unregistered: [Int32])>((0, []))

    var unregistered: [Int32] { state.withLock { $0.unregistered } }

    func register(_ descriptor: FileDescriptor) throws(Errno) -> Int32 {
        state.withLock { state in
            state.last += 1
            return state.last
        }
    }

    func unregister(_ backing: Int32) { state.withLock { $0.unregistered.append(backing) } }
}
