import FUSE
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

@Suite(.tags(.mount), .enabled("\(FUSEAvailability.obstacle ?? "")") { FUSEAvailability.isAvailable })
struct PassthroughTests {
    @Test func readsMapsAndWritesTheBackingFile() async throws {
        try await Mounted.run { mount async throws in
            guard mount.session.negotiated?.passthrough == true else {
                // Without the right or the kernel for it the file is still readable, through the file system.
                return try await readsWithoutPassthrough(mount)
            }
            let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            let path = try mount.directory.makeFile("backing", bytes)
            let file = OwnedDescriptor(try FileDescriptor.open(path, .readWrite))
            let node = mount.fileSystem.add("file", .backing(file, nil, size: 300_000))
            #expect(try await Command.run("cmp", path.string, mount["file"]).status == 0)
            let mapped = try await Command.python(
                """
                import mmap, sys
                with open(sys.argv[1], "r+b") as f, open(sys.argv[1], "rb") as g:
                    m = mmap.mmap(f.fileno(), 0)
                    print(m[100:103].hex())
                    m[0:4] = b"MMAP"
                    m.flush()
                    f.seek(4); f.write(b"WRITE"); f.flush()
                    print(g.read(9))
                """, mount["file"])
            #expect(mapped.errors == "")
            #expect(mapped.line == "bcc3ca\nb'MMAPWRITE'")
            #expect(try await Command.run("head", "-c", "9", path.string).output == "MMAPWRITE")
            #expect(mount.fileSystem.counts.reads == 0 && mount.fileSystem.counts.writes == 0)

            let backing = try #require(
                mount.fileSystem.state.withLock { state -> BackingID? in
                    if case .backing(_, let backing, _) = state.nodes[node]?.content { backing } else { nil }
                })
            try mount.session.unregisterBacking(backing)
            #expect(throws: Errno.noSuchFileOrDirectory) { try mount.session.unregisterBacking(backing) }
        }
    }

    @Test func isLeftOutWhenNotWanted() async throws {
        try await Mounted.run({ $0.passthrough = false }) { mount async throws in
            #expect(mount.session.negotiated?.passthrough == false)
            try await readsWithoutPassthrough(mount)
        }
    }

    private func readsWithoutPassthrough(_ mount: Mounted) async throws {
        let path = try mount.directory.makeFile("backing", [UInt8](repeating: 9, count: 50_000))
        let file = OwnedDescriptor(try FileDescriptor.open(path, .readOnly))
        mount.fileSystem.add("file", .backing(file, nil, size: 50_000))
        #expect(try await Command.run("cmp", path.string, mount["file"]).status == 0)
        #expect(mount.fileSystem.counts.reads > 0)
    }
}
