import Foundation
import GRDB
import Logging
import ReplicaTestSupport
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// The next daemon opens the database while it is locked.
extension UncommittedChangesTests {
    /// Calls a function for each message.
    private struct Listener: LogHandler {
        let hear: @Sendable (String) -> Void
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        init(_ hear: @escaping @Sendable (String) -> Void) { self.hear = hear }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { hear("\(event.message)") }
    }

    /// What a killed daemon leaves, with a change that is only in the redo log, while a process has locked the database until the
    /// file `unlock` exists.
    private func withLockedImage(_ body: (FilePath, _ unlock: FilePath) throws -> Void) async throws {
        try make("new")
        let (crashed, marks) = (try image(of: replica), try TemporaryDirectory())
        defer { marks.remove() }
        #expect(replica.database.uncommitted.isOpen)
        let script = """
            import os, sqlite3, sys, time
            database = sqlite3.connect(sys.argv[1], isolation_level=None)
            database.execute("BEGIN IMMEDIATE")
            open(sys.argv[2], "w").close()
            while not os.path.exists(sys.argv[3]): time.sleep(0.005)
            os._exit(0)
            """
        let path = crashed.directory.appending(ReplicaDatabase.fileName)
        let (holder, _) = try await BackgroundProgram.start(
            ["python3", "-c", script, path.string, marks["locked"].string, marks["unlock"].string],
            until: marks["locked"])
        defer { holder.kill() }
        try withExtendedLifetime(crashed) { try body(crashed.directory, marks["unlock"]) }
    }

    @Test("TAKEOVER-1: a mount is continued when what is left of the killed daemon locks the database for a while")
    func lockedByTheKilledDaemon() async throws {
        try await withLockedImage { directory, unlock in
            let waits = Mutex(0)
            let logger = Logger(label: "test") { _ in
                Listener { message in
                    guard message.contains("locked") else { return }
                    waits.withLock { $0 += 1 }
                    _ = FileManager.default.createFile(atPath: unlock.string, contents: nil)
                }
            }
            let replica = try Replica(
                at: directory, readers: 2, isTakenOver: true, busyTimeout: 0.02, logger: logger)
            #expect(try replica.names() == ["d", "first", "new"])
            #expect(replica.findings == [])
            #expect(waits.withLock { $0 } == 1)
        }
    }

    @Test("a daemon that ends does not wait for the locks of a killed one") func endsWhileLocked() async throws {
        try await withLockedImage { directory, _ in
            let hasWaited = Atomic(false)
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let error = #expect(throws: DatabaseError.self) {
                try Replica(
                    at: directory, readers: 2, isTakenOver: true,
                    mayWait: { !hasWaited.exchange(true, ordering: .relaxed) }, busyTimeout: 0.02, logger: logger)
            }
            #expect(error?.resultCode == .SQLITE_BUSY)
            let isAsked = hasWaited.load(ordering: .relaxed)
            #expect(isAsked)
        }
    }

    @Test("a database that another program has locked is not waited for without a mount") func lockedByOthers()
        async throws
    {
        try await withLockedImage { directory, _ in
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let error = #expect(throws: DatabaseError.self) {
                try Replica(at: directory, readers: 2, busyTimeout: 0.02, logger: logger)
            }
            #expect(error?.resultCode == .SQLITE_BUSY)
        }
    }
}
