import FileProvider
import Replica
import ReplicaTestSupport
import Synchronization
import Syscalls
import SystemPackage
import Testing
import Volume

/// The POSIX semantics of a volume, without a kernel.
@Suite struct VolumeTests: VolumeSuite {
    let own: VolumeFixture

    init() throws { own = try VolumeFixture() }

    // MARK: - Names

    @Test("a directory that is not listed is absent, for lookup and listing; after that names are known or ENOENT")
    func lookup() async throws {
        #expect(prerequisite { try volume.lookup("a", in: 1) } == .listing(of: .root, beyond: nil))
        #expect(prerequisite { try volume.openDirectory(1, isProvided: false) } == .listing(of: .root, beyond: 0))
        #expect(
            prerequisite { try volume.entries(of: 1, after: 0, limit: 10, isProvided: false) }
                == .listing(of: .root, beyond: 0))
        try await replica.list([.file("a"), .directory("d")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        #expect(a.kind == .file)
        #expect(errno { try volume.lookup("b", in: 1) } == .noSuchFileOrDirectory)
        #expect(try volume.entries(of: 1, after: 0, limit: 10, isProvided: false).map(\.name) == ["a", "d"])
        let d = try volume.lookup("d", in: 1)
        #expect(try volume.parent(of: d.node) == 1)
        #expect(prerequisite { try volume.lookup("x", in: d.node) } == .listing(of: number(d), beyond: nil))
    }

    @Test("what is no directory, and what is not there, have their errno") func wrongKinds() async throws {
        try await replica.list([.file("a"), .directory("d")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        let d = try volume.lookup("d", in: 1)
        #expect(errno { try volume.openDirectory(a.node, isProvided: false) } == .notDirectory)
        #expect(errno { try volume.entries(of: a.node, after: 0, limit: 1, isProvided: false) } == .notDirectory)
        #expect(errno { try volume.open(d.node, for: .reading, caller: caller, registry: nil) } == .isDirectory)
        #expect(errno { try volume.linkTarget(of: a.node) } == .invalidArgument)
        #expect(errno { try volume.attributes(of: 999) } == .staleNFSFileHandle)
        #expect(errno { try volume.seek(to: .data, in: d.node, from: 0) } == .invalidArgument)
    }

    @Test("a listing goes on after each entry, while others come and go") func listingGoesOn() async throws {
        try await replica.list((0..<100).map { .file("f\($0)") }, open: fixture.open)
        var names: [String] = []
        var offset: UInt64 = 0
        while let entry = try volume.entries(of: 1, after: offset, limit: 1, isProvided: false).first {
            names.append(entry.name)
            offset = entry.offset
            if names.count == 50 {
                try await replica.change([.file("new")], deleted: ["f10", "f60"], open: fixture.open)
            }
        }
        let expected = (0..<100).map { "f\($0)" }.filter { $0 != "f60" } + ["new"]
        #expect(names == expected)
    }

    // MARK: - Attributes

    @Test("a dataless file has a block, an empty one none; an item without an owner belongs to the user who mounted")
    func attributes() async throws {
        var ours = FileProviderItem.file("a", size: 10_000)
        ours.permissions = 0o640
        ours.owner = 1
        ours.group = 2
        try await replica.list([ours, .file("empty", size: 0), .directory("d")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        #expect(a.blocks == 1)
        #expect(a.permissions == 0o640)
        #expect((a.owner, a.group) == (1, 2))
        let empty = try volume.lookup("empty", in: 1)
        #expect(empty.blocks == 0)
        #expect(empty.permissions == 0o644)
        #expect((empty.owner, empty.group) == (7, 8))
        #expect(try volume.lookup("d", in: 1).linkCount == 1)
        try await replica.fill(number(a))
        #expect(try volume.attributes(of: a.node).blocks == 24)
    }

    // MARK: - Content

    @Test("a dataless file is all data") func seeksDataless() async throws {
        try await replica.list([.file("a", size: 10_000)], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        #expect(try volume.seek(to: .data, in: a.node, from: 5) == 5)
        #expect(try volume.seek(to: .hole, in: a.node, from: 5) == 10_000)
        #expect(errno { try volume.seek(to: .data, in: a.node, from: 10_000) } == .noSuchAddressOrDevice)
    }

    @Test(
        "LIMIT-1: a file that is not local is opened by a process that was permitted, and others are asked about each time"
    )
    func opensWithPermission() async throws {
        try await replica.list([.file("a", size: 10_000, version: "v")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        func open(isPermitted: Bool) throws(VolumeError) {
            _ = try volume.open(a.node, for: .reading, caller: caller, registry: nil, isPermitted: isPermitted)
            volume.close(a.node, wasWriting: false, registry: nil)
        }
        #expect(prerequisite { try open(isPermitted: false) } == .permission(toRead: number(a)))
        try open(isPermitted: true)
        #expect(prerequisite { try open(isPermitted: false) } == .permission(toRead: number(a)))
    }

    @Test("a read of what is not here is absent in just its range, clamped to the file") func readsAbsent() async throws
    {
        try await replica.list([.file("a", size: 10_000, version: "v")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        #expect(try volume.open(a.node, for: .reading, caller: caller, registry: nil) == .cachedAnew)
        defer { volume.close(a.node, wasWriting: false, registry: nil) }
        let version = Array("v".utf8)
        #expect(
            prerequisite { try volume.read(a.node, at: 4096, count: 8192, isProvided: false) }
                == .content(of: number(a), version: version, range: 4096..<10_000))
        #expect(try volume.read(a.node, at: 10_000, count: 1, isProvided: false).count == 0)
        try await replica.fill(number(a))
        let grant = try volume.read(a.node, at: 4096, count: 8192, isProvided: false)
        #expect(grant.count == 10_000 - 4096)
        #expect(try grant.descriptor?.descriptor.readBytes(at: grant.offset, count: 2) == [7, 7])
        #expect(errno { try volume.read(1234, at: 0, count: 1, isProvided: false) } == .badFileDescriptor)
    }

    @Test("a write under way keeps its file when another process truncates it") func writesWhileTruncated() throws {
        let made = try volume.create(
            "a", in: 1, permissions: 0o644, isWriting: true, caller: caller, registry: nil, isListed: false)
        let writing = try volume.writing(made.attributes.node, caller: nil)
        let file = try FileStatus(of: writing.descriptor)
        _ = try volume.setAttributes(of: made.attributes.node, to: LocalAttributes(size: 0), caller: caller)
        // A descriptor that was closed would get the next file's number.
        let next = try FileDescriptor.open("/dev/null", .readOnly, options: .closeOnExec)
        defer { try? next.close() }
        #expect(try FileStatus(of: writing.descriptor).inode == file.inode)
        volume.close(made.attributes.node, wasWriting: true, registry: nil)
    }

    @Test("OPEN-6: an unnamed file gets its mode from the umask, or from the default ACL of its directory")
    func modesOfUnnamedFiles() async throws {
        try await replica.list([.directory("d")], open: fixture.open)
        let directory = try volume.lookup("d", in: 1).node
        let careful = Requester(processIdentifier: 1, userIdentifier: 7, groupIdentifier: 8, umask: 0o077)
        func make() throws -> Attributes {
            try volume.createUnnamed(
                in: directory, permissions: 0o666, isWriting: true, caller: careful, registry: nil
            ).attributes
        }
        let masked = try make()
        #expect(masked.permissions == 0o600)
        volume.close(masked.node, wasWriting: true, registry: nil)

        // Entries of a tag, permissions and a user: u::rwx,u:12345:rw,g::r,m::rw,o::-
        let none = UInt32.max
        let entries: [(UInt8, UInt8, UInt32)] = [
            (1, 7, none), (2, 6, 12345), (4, 4, none), (16, 6, none), (32, 0, none),
        ]
        let list: [UInt8] = entries.reduce(into: [2, 0, 0, 0]) { list, entry in
            list += [entry.0, 0, entry.1, 0]
            list += (0..<4).map { UInt8(truncatingIfNeeded: entry.2 >> (8 * $0)) }
        }
        try volume.setExtendedAttribute(
            "system.posix_acl_default", of: directory, to: list, mustBeNew: false, mustExist: false, caller: caller,
            isProvided: false)
        let inherited = try make()
        #expect(inherited.permissions == 0o660)
        #expect(
            try volume.extendedAttributeNames(of: inherited.node, caller: caller) == ["system.posix_acl_access"])
        volume.close(inherited.node, wasWriting: true, registry: nil)
    }

    @Test(
        "OPEN-1: a first read of a version of another size tells the kernel, or has it read again",
        arguments: [20, 20_000, 200_000])
    func firstReadOfAnotherSize(_ size: Int64) async throws {
        try await replica.list([.file("a", size: 10_000, version: "1")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        _ = try volume.open(a.node, for: .reading, caller: caller, registry: nil)
        defer { volume.close(a.node, wasWriting: false, registry: nil) }
        #expect(volume.unreadSize(of: a.node, readingTo: 4096) == 10_000)
        func read() throws(VolumeError) -> ReadGrant {
            try volume.read(
                a.node, at: 0, count: 32_768, isProvided: true,
                unreadSize: volume.unreadSize(of: a.node, readingTo: 32_768))
        }
        try await replica.change([.file("a", size: size, version: "2")], open: fixture.open)
        try await replica.fill(number(a))
        if size < 10_000 {
            #expect(errno { try read() } == .staleNFSFileHandle)
            #expect(try read().count == Int(size))
        } else {
            let grant = try read()
            #expect(grant.isLonger)
            #expect(grant.count == Int(min(size, 32_768)))
            var told: [Int64] = []
            volume.tellSize(of: a.node) { size, end, _ in told += [size, end] }
            // Another request may have been first.
            volume.tellSize(of: a.node) { size, end, _ in told += [size, end] }
            #expect(told == [size, 32_768])
        }
        #expect(volume.unreadSize(of: a.node, readingTo: 32_768) == nil)
        #expect(try !read().isLonger)
    }

    @Test(
        "OPEN-1: the kernel is told no size by a page that another read may have requested",
        arguments: [50_000, 200_000])
    func firstReadOfSeveral(_ requested: Int64) async throws {
        try await replica.list([.file("a", size: 100_000, version: "1")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        _ = try volume.open(a.node, for: .reading, caller: caller, registry: nil)
        defer { volume.close(a.node, wasWriting: false, registry: nil) }
        let size = volume.unreadSize(of: a.node, readingTo: 32_768)
        #expect(volume.unreadSize(of: a.node, readingTo: requested) == 100_000)
        try await replica.change([.file("a", size: 150_000, version: "2")], open: fixture.open)
        try await replica.fill(number(a))
        let grant = try volume.read(a.node, at: 0, count: 32_768, isProvided: true, unreadSize: size)
        #expect(grant.isLonger)
        var told: [Int64] = []
        volume.tellSize(of: a.node) { size, end, _ in told = [size, end] }
        #expect(told == [150_000, max(100_000, requested)])
    }

    @Test("OPEN-7: an append to a file that gets another size while it waits is opened anew", arguments: [20, 20_000])
    func appendToAnotherSize(_ size: Int64) async throws {
        try await replica.list([.file("a", size: 10_000, version: "1")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        func open(knownSize: Int64?, request: RequestNumber? = nil) throws(VolumeError) -> OpenGrant {
            try volume.open(
                a.node, for: OpenIntent(isWriting: true, isTruncating: false, isReading: false, isAppending: true),
                caller: caller, registry: nil, knownSize: knownSize, request: request)
        }
        #expect(prerequisite { try open(knownSize: nil) } == .whole(of: number(a)))
        try await replica.change([.file("a", size: size, version: "2")], open: fixture.open)
        try await replica.fill(number(a))
        #expect(errno { try open(knownSize: 10_000) } == .staleNFSFileHandle)
        let resent = RequestNumber(rawValue: 1, isResent: true)
        #expect(errno { try open(knownSize: nil, request: resent) } == .staleNFSFileHandle)
        #expect(!volume.openInodes.isOpen(number(a)))
        #expect(try open(knownSize: size) == .cached)
        volume.close(a.node, wasWriting: true, registry: nil)
    }

    @Test("how a file is served is decided at its first open and kept to the last close") func opensAgree() async throws
    {
        try await replica.list([.file("a")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        let registry = Registry()
        #expect(try volume.open(a.node, for: .reading, caller: caller, registry: registry) == .cachedAnew)
        try await replica.fill(number(a))
        // It is here by now, but open already.
        #expect(try volume.open(a.node, for: .reading, caller: caller, registry: registry) == .cachedAnew)
        #expect(volume.openInodes.isOpen(number(a)))
        volume.close(a.node, wasWriting: false, registry: registry)
        #expect(closed.numbers.isEmpty)
        volume.close(a.node, wasWriting: false, registry: registry)
        #expect(closed.numbers == [number(a)])
        #expect(!volume.openInodes.isOpen(number(a)))

        #expect(try volume.open(a.node, for: .reading, caller: caller, registry: registry) == .passthrough(backing: 1))
        #expect(try volume.open(a.node, for: .reading, caller: caller, registry: registry) == .passthrough(backing: 1))
        volume.close(a.node, wasWriting: false, registry: registry)
        #expect(registry.unregistered.isEmpty)
        volume.close(a.node, wasWriting: false, registry: registry)
        #expect(registry.unregistered == [1])
    }

    @Test("an open file whose remote moves on keeps its version; what is not here of it is ESTALE") func staleReads()
        async throws
    {
        try await replica.list([.file("a", size: 10_000, version: "1")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        fixture.open.insert(number(a))
        _ = try volume.open(a.node, for: .reading, caller: caller, registry: nil)
        try await replica.change([.file("a", size: 20, version: "2")], open: fixture.open)
        #expect(try volume.attributes(of: a.node).size == 10_000)
        // Who looks it up sees the new version.
        let newest = try volume.lookup("a", in: 1)
        #expect(newest.size == 20)
        #expect(newest.node != a.node)
        let missing = Prerequisite.content(of: number(a), version: Array("1".utf8), range: 0..<10)
        #expect(prerequisite { try volume.read(a.node, at: 0, count: 10, isProvided: false) } == missing)
        volume.close(a.node, wasWriting: false, registry: nil)
    }

    // MARK: - Extended attributes

    @Test("the daemon's attributes are answered for every item and never listed") func daemonAttributes() async throws {
        var item = FileProviderItem.file("a", id: "identifier", version: "v1")
        item.extendedAttributes = ["own": [1, 2, 3]]
        try await replica.list([item], open: fixture.open)
        let a = try volume.lookup("a", in: 1).node
        func text(_ name: String) throws -> String {
            String(decoding: try volume.extendedAttribute("user.yonder." + name, of: a), as: UTF8.self)
        }
        #expect(try text("content") == "dataless")
        #expect(try text("sync") == "synced")
        #expect(try text("id") == "identifier")
        #expect(try text("version") == "v1")
        #expect(try text("policy") == "inherited")
        #expect(errno { try text("error") } == .noData)
        #expect(errno { try text("nonsense") } == .noData)
        #expect(try volume.extendedAttributeNames(of: a, caller: caller) == ["user.own"])
        #expect(try volume.extendedAttribute("user.own", of: a) == [1, 2, 3])
        #expect(errno { try volume.extendedAttribute("user.other", of: a) } == .noData)
        #expect(errno { try volume.extendedAttribute("security.capability", of: a) } == .noData)
        #expect(errno { try volume.extendedAttribute("security.selinux", of: a) } == .notSupported)
        #expect(errno { try volume.extendedAttribute("system.other", of: a) } == .notSupported)
    }

    @Test("writing evict and download ask for it; the daemon's others cannot be written, the item's own can")
    func writesAttributes() async throws {
        try await replica.list([.file("a")], open: fixture.open)
        let a = try volume.lookup("a", in: 1)
        func set(_ name: String, isProvided: Bool = false) throws {
            try volume.setExtendedAttribute(
                name, of: a.node, to: [1], mustBeNew: false, mustExist: false, caller: caller, isProvided: isProvided)
        }
        #expect(prerequisite { try set("user.yonder.evict") } == .eviction(of: number(a)))
        #expect(prerequisite { try set("user.yonder.download") } == .download(of: number(a)))
        try set("user.yonder.evict", isProvided: true)
        #expect(errno { try set("user.yonder.content") } == .notPermitted)
        try set("user.own")
        #expect(try volume.extendedAttribute("user.own", of: a.node) == [1])
        #expect(try volume.extendedAttributeNames(of: a.node, caller: caller) == ["user.own"])
        try set("trusted.root")
        try set("user.//own")
        #expect(try volume.extendedAttributeNames(of: a.node, caller: caller) == ["user.//own", "user.own"])
        let root = Requester(processIdentifier: 1, userIdentifier: 0, groupIdentifier: 0)
        #expect(
            try volume.extendedAttributeNames(of: a.node, caller: root) == ["trusted.root", "user.//own", "user.own"])
        try volume.removeExtendedAttribute("user.own", of: a.node, caller: caller)
        #expect(errno { try volume.removeExtendedAttribute("user.own", of: a.node, caller: caller) } == .noData)
    }

    @Test("ACCESS-12: evict, download, upload and policy of a directory are for its owner")
    func ownersAttributes() async throws {
        try await replica.list([.file("a"), .directory("d")], open: fixture.open)
        let (file, directory) = (try volume.lookup("a", in: 1).node, try volume.lookup("d", in: 1).node)
        let other = Requester(processIdentifier: 1, userIdentifier: 54321, groupIdentifier: 54321)
        func set(_ name: String, of node: UInt64, _ caller: Requester) throws {
            try volume.setExtendedAttribute(
                name, of: node, to: Array("keepDownloaded".utf8), mustBeNew: false, mustExist: false, caller: caller,
                isProvided: false)
        }
        for name in ["evict", "download", "upload", "policy"].map({ "user.yonder." + $0 }) {
            #expect(errno { try set(name, of: directory, other) } == .notPermitted)
        }
        #expect(
            errno { try volume.removeExtendedAttribute("user.yonder.policy", of: directory, caller: other) }
                == .notPermitted)
        try set("user.yonder.policy", of: directory, caller)
        #expect(try volume.extendedAttribute("user.yonder.policy", of: directory) == Array("keepDownloaded".utf8))
        #expect(
            prerequisite { try set("user.yonder.evict", of: file, other) }
                == .eviction(of: InodeNumber(rawValue: Int64(bitPattern: file))))
    }

    // MARK: - Tools

    private func number(_ attributes: Attributes) -> InodeNumber {
        InodeNumber(rawValue: Int64(bitPattern: attributes.node))
    }

    /// A kernel that registers every file.
    final class Registry: PassthroughRegistry {
        private let state = Mutex<(next: Int32, gone: [Int32])>((1, []))

        var unregistered: [Int32] { state.withLock { $0.gone } }

        func register(_ descriptor: FileDescriptor) throws(Errno) -> Int32 {
            state.withLock { state in
                defer { state.next += 1 }
                return state.next
            }
        }

        func unregister(_ backing: Int32) {
            state.withLock { $0.gone.append(backing) }
        }
    }
}
