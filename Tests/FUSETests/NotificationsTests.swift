import FUSE
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

@Suite(.tags(.mount), .enabled("\(FUSEAvailability.obstacle ?? "")") { FUSEAvailability.isAvailable })
struct NotificationsTests {
    @Test func contentsAndAttributes() async throws {
        try await Mounted.run { mount async throws in
            let node = mount.fileSystem.add("file", .bytes(Array("before".utf8)))
            #expect(try await Command.run("cat", mount["file"]).output == "before")
            // A read invalidates the access time; this `stat` makes the kernel ask for it, so that the next one is cached.
            #expect(try await Command.run("stat", "-c", "%s %x", mount["file"]).status == 0)
            mount.fileSystem.replace(node, with: Array("afterwards".utf8))
            #expect(try await Command.run("cat", mount["file"]).output == "before")
            #expect(try await Command.run("stat", "-c", "%s", mount["file"]).line == "6")

            mount.session.notifications.invalidateContents(node)
            await mount.session.notifications.drain()
            #expect(try await Command.run("cat", mount["file"]).output == "afterwards")
            #expect(try await Command.run("stat", "-c", "%s", mount["file"]).line == "10")
        }
    }

    @Test("TAKEOVER-1: the thread that the kernel may block holds no descriptor but the device") func ownDescriptors()
        async throws
    {
        try await Mounted.run { mount async throws in
            await mount.session.notifications.drain()
            let files = FileManager.default
            func threads() -> [String] {
                ((try? files.contentsOfDirectory(atPath: "/proc/self/task")) ?? []).filter {
                    (try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)) == "fuse-notify\n"
                }
            }
            // That of an earlier test may be ending.
            #expect(await eventually { threads().count == 1 })
            let thread = try #require(threads().first)
            let descriptors = try files.contentsOfDirectory(atPath: "/proc/self/task/\(thread)/fd")
            #expect(descriptors.count == 1)
            let kept = try #require(descriptors.first)
            #expect(try files.destinationOfSymbolicLink(atPath: "/proc/self/task/\(thread)/fd/\(kept)") == "/dev/fuse")
        }
    }

    /// Notes the thread that makes each job ready: the one that resumes a continuation.
    private final class NotingExecutor: TaskExecutor {
        let threads = Mutex<Set<String>>([])

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            let name = (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)) ?? ""
            threads.withLock { _ = $0.insert(name) }
            DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    @Test("TAKEOVER-1: the thread that the kernel may block starts no thread, which would share its descriptors")
    func resumesElsewhere() async throws {
        try await Mounted.run { mount async throws in
            let (executor, notifications) = (NotingExecutor(), mount.session.notifications)
            await withTaskExecutorPreference(executor) {
                for _ in 0..<10 { await notifications.drain() }
            }
            let threads = executor.threads.withLock { $0 }
            #expect(threads.contains("fuse-drain\n"))
            #expect(!threads.contains("fuse-notify\n"))
        }
    }

    @Test func attributesOnly() async throws {
        try await Mounted.run { mount async throws in
            let node = mount.fileSystem.add("file", .bytes(Array("before".utf8)))
            #expect(try await Command.run("cat", mount["file"]).output == "before")
            let reads = mount.fileSystem.counts.reads
            mount.fileSystem.state.withLock { $0.nodes[node]?.attributes.permissions = 0o600 }
            #expect(try await Command.run("stat", "-c", "%a", mount["file"]).line == "644")
            mount.session.notifications.invalidateAttributes(node)
            await mount.session.notifications.drain()
            #expect(try await Command.run("stat", "-c", "%a", mount["file"]).line == "600")
            #expect(try await Command.run("cat", mount["file"]).output == "before")
            #expect(mount.fileSystem.counts.reads == reads)
        }
    }

    @Test func aRangeOfContents() async throws {
        try await Mounted.run { mount async throws in
            let node = mount.fileSystem.add("file", .bytes([UInt8](repeating: UInt8(ascii: "a"), count: 8192)))
            #expect(try await Command.shell("tr -d a <\"$1\" | wc -c", mount["file"]).line == "0")
            mount.fileSystem.replace(node, with: [UInt8](repeating: UInt8(ascii: "b"), count: 8192))
            mount.session.notifications.invalidateContents(node, range: 4096..<8192)
            await mount.session.notifications.drain()
            #expect(try await Command.shell("tr -d a <\"$1\" | wc -c", mount["file"]).line == "4096")
        }
    }

    @Test func entries() async throws {
        try await Mounted.run { mount async throws in
            let notifications = mount.session.notifications
            #expect(try await Command.run("test", "-e", mount["late"]).status == 1)
            mount.fileSystem.add("late", .bytes(Array("first".utf8)))
            // The kernel has cached a negative dentry.
            let lookups = mount.fileSystem.counts.lookups
            #expect(try await Command.run("test", "-e", mount["late"]).status == 1)
            #expect(mount.fileSystem.counts.lookups == lookups)

            notifications.expireEntry(parent: .root, name: "late")
            await notifications.drain()
            #expect(try await Command.run("cat", mount["late"]).output == "first")

            mount.fileSystem.add("late", .bytes(Array("second".utf8)))
            #expect(try await Command.run("cat", mount["late"]).output == "first")
            notifications.expireEntry(parent: .root, name: "late")
            await notifications.drain()
            #expect(try await Command.run("cat", mount["late"]).output == "second")
        }
    }

    @Test("an answer that a notification overtakes is not believed for long") func overtakenAnswer() async throws {
        try await Mounted.run { mount async throws in
            let (notifications, fileSystem) = (mount.session.notifications, mount.fileSystem)
            fileSystem.add("file", .bytes(Array("first".utf8)))
            #expect(try await Command.run("cat", mount["file"]).output == "first")
            // Nothing has changed: the answer confirms the dentry.
            notifications.expireEntry(parent: .root, name: "file")
            await notifications.drain()
            let hasChanged = Atomic(false)
            fileSystem.state.withLock { state in
                state.onLookup = {
                    guard !hasChanged.exchange(true, ordering: .relaxed) else { return }
                    fileSystem.add("file", .bytes(Array("second".utf8)))
                    notifications.expireEntry(parent: .root, name: "file")
                    let isSent = DispatchSemaphore(value: 0)
                    Task {
                        await notifications.drain()
                        isSent.signal()
                    }
                    isSent.wait()
                }
            }
            #expect(try await Command.run("cat", mount["file"]).output == "first")
            #expect(try await eventually { try await Command.run("cat", mount["file"]).output == "second" })
            fileSystem.state.withLock { $0.onLookup = nil }
        }
    }

    @Test func deletions() async throws {
        try await Mounted.run { mount async throws in
            let node = mount.fileSystem.add("doomed", .bytes([]))
            #expect(try await Command.run("test", "-e", mount["doomed"]).status == 0)
            mount.fileSystem.remove("doomed")
            #expect(try await Command.run("test", "-e", mount["doomed"]).status == 0)
            mount.session.notifications.deleteEntry(parent: .root, child: node, name: "doomed")
            await mount.session.notifications.drain()
            #expect(try await Command.run("test", "-e", mount["doomed"]).status == 1)
        }
    }

    @Test func listings() async throws {
        try await Mounted.run { mount async throws in
            let folder = mount.fileSystem.add("folder", .children([:]))
            mount.fileSystem.add("one", .bytes([]), to: folder)
            #expect(try await Command.run("ls", mount["folder"]).line == "one")
            let listings = mount.fileSystem.counts.listings
            #expect(try await Command.run("ls", mount["folder"]).line == "one")
            #expect(mount.fileSystem.counts.listings == listings)
            mount.fileSystem.add("two", .bytes([]), to: folder)
            #expect(try await Command.run("ls", mount["folder"]).line == "one")
            mount.session.notifications.invalidateContents(folder)
            await mount.session.notifications.drain()
            #expect(try await Command.run("ls", mount["folder"]).line == "one\ntwo")
        }
    }

    @Test func ofUnknownFilesAreHarmless() async throws {
        try await Mounted.run { mount async throws in
            let notifications = mount.session.notifications
            notifications.invalidateContents(NodeID(12345))
            notifications.expireEntry(parent: NodeID(999), name: "nothing")
            notifications.deleteEntry(parent: .root, child: NodeID(4711), name: "nothing")
            await notifications.drain()
            #expect(notifications.pendingCount == 0)
            #expect(try await Command.run("ls", mount.path.string).status == 0)
        }
    }

    @Test func equalNeighboursAreOne() async throws {
        let session = try Session(options: SessionOptions(source: "x", subtype: "test"))
        for _ in 0..<10 { session.notifications.invalidateAttributes(NodeID(2)) }
        #expect(session.notifications.pendingCount == 1)
        session.notifications.invalidateContents(NodeID(2), range: 0..<0)
        session.notifications.invalidateContents(NodeID(2), range: 0..<1)
        session.notifications.invalidateAttributes(NodeID(2))
        #expect(session.notifications.pendingCount == 3)
    }

    @Test("OPEN-1: the nodes are known whose contents are still to be invalidated") func unsentInvalidations()
        async throws
    {
        let session = try Session(options: SessionOptions(source: "x", subtype: "test"))
        let notifications = session.notifications
        for _ in 0..<3 { notifications.invalidateContents(NodeID(2)) }
        notifications.invalidateAttributes(NodeID(3))
        #expect(notifications.isInvalidating(NodeID(2)))
        #expect(!notifications.isInvalidating(NodeID(3)))
        // The kernel is made to ask for a size once for each change, in each thread that opens the file.
        #expect(notifications.renewsSize(of: NodeID(2), for: 7))
        #expect(!notifications.renewsSize(of: NodeID(2), for: 7))
        #expect(notifications.renewsSize(of: NodeID(2), for: 8))
        #expect(!notifications.renewsSize(of: NodeID(3), for: 7))
        // Several threads whose number is unknown cannot be told apart: none may write at the old end.
        for _ in 0..<2 { #expect(notifications.renewsSize(of: NodeID(2), for: 0)) }
        #expect(!notifications.renewsSize(of: NodeID(3), for: 0))
        notifications.invalidateContents(NodeID(2))
        #expect(notifications.renewsSize(of: NodeID(2), for: 7))

        try await Mounted.run { mount async throws in
            let (node, notifications) = (mount.fileSystem.add("file", .bytes([])), mount.session.notifications)
            for _ in 0..<3 { notifications.invalidateContents(node) }
            notifications.invalidateContents(node, range: 0..<4096)
            await notifications.drain()
            #expect(!notifications.isInvalidating(node))
            for thread in [7, 0] as [Int32] { #expect(!notifications.renewsSize(of: node, for: thread)) }
        }
    }

    @Test(.timeLimit(.minutes(1))) func drainEndsWithTheSession() async throws {
        try await Mounted.run { mount async throws in
            try mount.session.unmount()
            await mount.session.waitUntilEnded()
            mount.session.notifications.invalidateAttributes(.root)
            await mount.session.notifications.drain()
            #expect(mount.session.notifications.pendingCount == 0)
        }
    }
}
