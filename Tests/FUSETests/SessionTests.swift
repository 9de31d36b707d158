import Dispatch
import FUSE
import Glibc
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

@Suite(.tags(.mount), .enabled("\(FUSEAvailability.obstacle ?? "")") { FUSEAvailability.isAvailable })
struct SessionTests {
    /// Its lines in /proc/mounts, seen by another process.
    private func mountsLine(_ mount: Mounted) async throws -> String {
        try await Command.shell(#"grep -F " $1 " /proc/mounts"#, mount.path.string).line
    }

    @Test func showsSourceAndType() async throws {
        try await Mounted.run({ $0.source = "//yonder/photos" }) { mount async throws in
            let fields = try await mountsLine(mount).split(separator: " ")
            #expect(fields.count >= 4)
            #expect(fields.first == "//yonder/photos")
            #expect(fields.dropFirst(2).first == "fuse.test")
            let options = try #require(fields.dropFirst(3).first).split(separator: ",")
            #expect(options.contains("nosuid") && options.contains("nodev") && options.contains("default_permissions"))
        }
    }

    @Test(arguments: [#"//yonder/a,b"#, #"//yonder/back\slash\\"#, "//yonder/two words", "//yonder/ro,subtype=x"])
    func showsOddSourcesVerbatim(source: String) async throws {
        try await Mounted.run({ $0.source = source }) { mount async throws in
            let field = try #require(try await mountsLine(mount).split(separator: " ").first)
            let escaped = source.replacing(#"\"#, with: #"\134"#).replacing(" ", with: #"\040"#)
            #expect(field == escaped)
        }
    }

    @Test func negotiates() async throws {
        try await Mounted.run { mount async throws in
            let features = try #require(mount.session.negotiated)
            #expect(features.maxWrite == 1 << 20)
            #expect(features.readDirectoryPlus && features.parallelDirectoryOperations && features.explicitInvalidation)
            #expect(features.spliceRead && features.spliceWrite && features.atomicTruncate)
        }
    }

    @Test func refusesBackingFilesWithoutPassthrough() async throws {
        try await Mounted.run({ $0.passthrough = false }) { mount async throws in
            #expect(mount.session.negotiated?.passthrough == false)
            #expect(throws: Errno.notSupported) { try mount.session.registerBacking(FileDescriptor(rawValue: 0)) }
            mount.fileSystem.add("file", .bytes([]))
            let written = try await Command.shell("echo hello >\"$1\" && cat \"$1\"", mount["file"])
            #expect(written.line == "hello")
            #expect(written.status == 0)
        }
    }

    @Test func endsWhenUnmountedFromOutside() async throws {
        try await Mounted.run { mount async throws in
            #expect(mount.session.isMounted)
            let program = FUSEAvailability.isRoot ? ["umount"] : ["fusermount3", "-u"]
            try await Command(program + [mount.path.string]).run().expectSuccess()
            await mount.session.waitUntilEnded()
            #expect(!mount.session.isMounted)
            #expect(mount.session.failure == nil)
            try mount.session.unmount()
            try mount.session.unmount()
        }
    }

    @Test func detachesWhatIsInUse() async throws {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("held", .bytes(Array("held".utf8)))
            let holder = Task {
                try await Command.shell(
                    #"exec <"$1"; : >"$2"; while [ -e "$2" ]; do sleep 0.01; done; cat"#,
                    mount["held"], mount.directory["holding"].string)
            }
            let flag = mount.directory["holding"].string
            let holds = try await eventually { try await Command.run("test", "-e", flag).status == 0 }
            #expect(holds)
            try mount.session.unmount()
            #expect(!mount.session.isMounted)
            #expect(!mount.session.hasEnded)
            _ = try await Command.run("rm", flag)
            #expect(try await holder.value.output == "held")
            await mount.session.waitUntilEnded()
        }
    }

    @Test func doesNotUnmountWhatIsNotItsOwn() async throws {
        try await Mounted.run { first async throws in
            _ = try await Command(
                (FUSEAvailability.isRoot ? ["umount"] : ["fusermount3", "-u"]) + [first.path.string]
            ).run()
            await first.session.waitUntilEnded()
            let second = try Session(options: SessionOptions(source: "//test/second", subtype: "test"))
            try second.mount(at: first.path)
            try second.serve(MemoryFileSystem(owner: try first.directory.owner))
            #expect(!first.session.isMounted)
            try first.session.unmount()
            #expect(second.isMounted)
            try second.unmount()
            await second.waitUntilEnded()
        }
    }

    /// An ordinary user needs the kernel's control file system for it, which is not mounted everywhere.
    @Test(.enabled(if: FUSEAvailability.isRoot, "only root can abort everywhere"))
    func abortFreesThoseWhoWait() async throws {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("parked", .parked(size: 4))
            let reader = Task { try await Command.run("cat", mount["parked"]) }
            #expect(await eventually { mount.fileSystem.counts.reads > 0 })
            mount.session.abort()
            #expect(try await reader.value.status == 1)
            await mount.session.waitUntilEnded()
            #expect(try MountTable().mount(at: mount.path) == nil)
        }
    }

    /// The kernel gives the number of the connection to the next mount at once, while a thread may still be closing a file.
    @Test(.enabled(if: FUSEAvailability.isRoot, "only root can abort everywhere"))
    func endsNoOtherMount() async throws {
        var shared = 0
        // Another process may take the number.
        for _ in 0..<20 where shared < 2 {
            try await Mounted.run { first async throws in
                let goOn = DispatchSemaphore(value: 0)
                defer { goOn.signal() }
                first.fileSystem.add("file", .bytes([1]))
                first.fileSystem.state.withLock { $0.onRelease = { goOn.wait() } }
                _ = try await Command.run("cat", first["file"])
                try #require(await eventually { first.fileSystem.counts.releases == 1 })
                let number = first.session.deviceNumber
                try first.session.unmount()
                try await Mounted.run { second async throws in
                    if second.session.deviceNumber == number { shared += 1 }
                    second.fileSystem.add("file", .bytes([2]))
                    first.session.abort()
                    #expect(try await Command.run("cat", second["file"]).outputBytes == [2])
                    goOn.signal()
                    await first.session.waitUntilEnded()
                    #expect(try await Command.run("cat", second["file"]).outputBytes == [2])
                }
            }
        }
        #expect(shared > 0, "no mount got the number of another")
    }

    @Test(.enabled(if: FUSEAvailability.isRoot, "only root mounts on it"), arguments: [true, false])
    func isThereWhileItIsCovered(isAbove: Bool) async throws {
        try await Mounted.run { mount async throws in
            let place = (isAbove ? mount.directory.path : mount.path).string
            #expect(!mount.session.isCovered)
            #expect(try await Command.run("mount", "-t", "tmpfs", "cover", place).status == 0)
            #expect(mount.session.isCovered && mount.session.isMounted && !mount.session.isDetached)
            #expect(throws: Errno.resourceBusy) { try mount.session.unmount() }
            #expect(try await Command.run("umount", place).status == 0)
            #expect(!mount.session.isCovered && mount.session.isMounted)
        }
    }

    /// As two daemons do that mount on one directory at once.
    @Test func mountsOnNoOtherMount() async throws {
        try await Mounted.run { mount async throws in
            mount.fileSystem.add("file", .bytes([1]))
            let other = try Session(options: SessionOptions(source: "//test/other", subtype: "test"))
            #expect(throws: Errno.resourceBusy) { try other.mount(at: mount.path) }
            #expect(!mount.session.isCovered)
            #expect(try await Command.run("cat", mount["file"]).outputBytes == [1])
        }
    }

    /// The keeper does not wait for requests while it answers them for a daemon that crashes. The processes share that setting.
    @Test("TAKEOVER-11: a session that takes a mount over waits for requests on a device that was left nonblocking")
    func waitsForRequests() async throws {
        try await Mounted.run { mount async throws in
            let device = mount.session.device.rawValue
            let record = try #require(mount.session.record)
            let next = try Session(options: SessionOptions(source: "//test/memory", subtype: "test"))
            #expect(fcntl(device, F_SETFL, fcntl(device, F_GETFL) | O_NONBLOCK) == 0)
            // A kernel before Linux 6.9 refuses it.
            try? next.takeOver(try mount.session.device.duplicateCloseOnExec(), of: record)
            let waits = fcntl(device, F_GETFL) & O_NONBLOCK == 0
            #expect(waits)
            mount.fileSystem.add("file", .bytes([1]))
            #expect(try await Command.run("cat", mount["file"]).outputBytes == [1])
        }
    }

    @Test func saysWhyItCannotMount() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let file = try directory.makeFile("file", [])
        let session = try Session(options: SessionOptions(source: "x", subtype: "test"))
        #expect(throws: Errno.noSuchFileOrDirectory) { try session.mount(at: directory["missing"]) }
        #expect(throws: Errno.notDirectory) { try session.mount(at: file) }
        #expect(throws: Errno.invalidArgument) { try session.serve(MemoryFileSystem()) }
        #expect(!session.isMounted)
        try session.unmount()
    }
}
