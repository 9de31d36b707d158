import FileProvider
import Logging
import ReplicaTestSupport
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Replica
@testable import Volume

/// Requests that were committed before a crash and are sent again have their recorded result and change nothing.
@Suite("resent requests") struct ResentRequestTests {
    let fixture: ReplicaFixture
    let caller = Requester(processIdentifier: 1, userIdentifier: 7, groupIdentifier: 8)
    static let request = RequestNumber(rawValue: 1 << 40)
    static let resent = RequestNumber(rawValue: 1 << 40, isResent: true)

    init() throws {
        fixture = try ReplicaFixture()
    }

    /// A volume over the replica as a crash left it: nothing was closed.
    private func begin(open: any OpenInodes = OpenSet()) throws -> Volume {
        let replica = try Replica(
            at: fixture.directory, readers: 4, open: open,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        return try .make(replica, observer: ClosedInodes())
    }

    /// All rows that a process or the remote can see.
    private func rows() async throws -> String {
        let outcome = try await Command.python(
            """
            import sqlite3, sys
            database = sqlite3.connect(sys.argv[1])
            for table in ["inode", "item", "deletion", "extendedAttribute", "nameless"]:
                for row in database.execute(f"SELECT * FROM {table} ORDER BY 1, 2"): print(table, row)
            """, fixture.directory.appending("replica.sqlite").string)
        #expect(outcome.status == 0)
        return outcome.output
    }

    /// Carries a request out, crashes, and carries it out again: the result is the same, and so are the rows.
    private func expectSame<Value: Equatable>(
        prepare: (Volume) throws -> Void = { _ in }, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: (Volume, RequestNumber) throws -> Value
    ) async throws {
        // Its connections are closed before the next daemon opens the database, as after a crash.
        func carryOut() async throws -> Value {
            let volume = try begin()
            try await volume.replica.list(
                [.file("a", size: 0), .directory("d"), .file("b", size: 0)], open: fixture.open)
            try prepare(volume)
            return try body(volume, Self.request)
        }
        let first = try await carryOut()
        let next = try begin()
        let before = try await rows()
        let second = try body(next, Self.resent)
        #expect(first == second, sourceLocation: sourceLocation)
        #expect(try await rows() == before, sourceLocation: sourceLocation)
        #expect(try next.replica.database.defects() == [], sourceLocation: sourceLocation)
        // A request that was not carried out is not taken for one that was.
        #expect(
            try !next.replica.database.wasCarriedOut(RequestNumber(rawValue: 7, isResent: true)),
            sourceLocation: sourceLocation)
    }

    private func node(_ name: String, _ volume: Volume, in parent: UInt64 = 1) throws -> UInt64 {
        try volume.lookup(name, in: parent).node
    }

    @Test("directories, nodes and symbolic links") func making() async throws {
        try await expectSame { volume, request in
            try volume.make("x", in: 1, mode: 0o040755, caller: caller, request: request).node
        }
        try await expectSame { volume, request in
            try volume.make("fifo", in: 1, mode: 0o010644, caller: caller, request: request).node
        }
    }

    @Test("a symbolic link") func symbolicLinks() async throws {
        try await expectSame { volume, request in
            try volume.makeSymbolicLink("l", in: 1, to: "a", caller: caller, request: request).node
        }
    }

    @Test("hard links") func links() async throws {
        try await expectSame(prepare: { volume in
            let made = try volume.make("one", in: 1, mode: 0o100644, caller: caller)
            #expect(made.linkCount == 1)
        }) { volume, request in
            let attributes = try volume.link(try node("one", volume), as: "two", in: 1, request: request)
            return [attributes.node, UInt64(attributes.linkCount)]
        }
    }

    @Test("unlink and rmdir") func removals() async throws {
        try await expectSame { volume, request in
            try volume.unlink("a", in: 1, request: request)
            return 0
        }
    }

    @Test("rmdir") func removedDirectories() async throws {
        try await expectSame(prepare: { _ = try $0.make("x", in: 1, mode: 0o040755, caller: caller) }) {
            try $0.removeDirectory("x", in: 1, request: $1)
            return 0
        }
    }

    @Test("rename, with each rule", arguments: [(false, false), (true, false), (false, true)])
    func renames(noReplace: Bool, exchange: Bool) async throws {
        try await expectSame { volume, request in
            try volume.rename(
                "a", in: 1, to: noReplace ? "c" : "b", in: 1, noReplace: noReplace, exchange: exchange,
                request: request)
            return 0
        }
    }

    @Test("TAKEOVER-1: a result is still there after the changes that other threads make before it is answered")
    func manyLater() async throws {
        try await expectSame { volume, request in
            try volume.rename("a", in: 1, to: "c", in: 1, noReplace: false, exchange: false, request: request)
            if request.isResent { return 0 }
            // Its thread has lost its processor: first others make files ahead of the database, then in transactions.
            for index in 0..<1_000 {
                let later = RequestNumber(rawValue: UInt64(2 + 2 * index))
                _ = try volume.create(
                    "later \(index)", in: 1, permissions: 0o644, isWriting: false, caller: caller, registry: nil,
                    request: later)
            }
            for index in 0..<1_000 {
                let later = RequestNumber(rawValue: UInt64(4_000 + 2 * index))
                _ = try volume.make("node \(index)", in: 1, mode: 0o010644, caller: caller, request: later)
            }
            return 0
        }
    }

    @Test("trashing by a rename") func trashing() async throws {
        try await expectSame(prepare: { volume in
            try volume.replica.database.set(.hasTrash, to: "1")
            let top = try volume.make(".Trash-7", in: 1, mode: 0o040700, caller: caller)
            _ = try volume.make("info", in: top.node, mode: 0o040700, caller: caller)
            _ = try volume.make("files", in: top.node, mode: 0o040700, caller: caller)
            _ = try volume.make("mine", in: 1, mode: 0o100644, caller: caller)
        }) { volume, request in
            let files = try node("files", volume, in: try node(".Trash-7", volume))
            try volume.rename(
                "mine", in: 1, to: "mine", in: files, noReplace: false, exchange: false, request: request)
            return 0
        }
    }

    @Test("attributes and extended attributes") func attributes() async throws {
        let changes = LocalAttributes(permissions: 0o600, modifiedAt: .now)
        try await expectSame { volume, request in
            try volume.setAttributes(of: try node("a", volume), to: changes, caller: caller, request: request)
                .permissions
        }
    }

    @Test("setxattr that must be new") func newExtendedAttributes() async throws {
        try await expectSame { volume, request in
            try volume.setExtendedAttribute(
                "user.x", of: try node("a", volume), to: [1], mustBeNew: true, mustExist: false, caller: caller,
                isProvided: false, request: request)
            return 0
        }
    }

    @Test("removexattr") func removedExtendedAttributes() async throws {
        try await expectSame(prepare: { volume in
            try volume.setExtendedAttribute(
                "user.x", of: try node("a", volume), to: [1], mustBeNew: true, mustExist: false, caller: caller,
                isProvided: false)
        }) { volume, request in
            try volume.removeExtendedAttribute(
                "user.x", of: try node("a", volume), caller: caller, request: request)
            return 0
        }
    }

    @Test(
        "a file that was created has its inode, whether in a transaction or by the creation log, and is marked as written"
    )
    func creations() async throws {
        for isAhead in [false, true] {
            let name = "created \(isAhead)"
            let first = RequestNumber(rawValue: isAhead ? 100 : 200)
            var volume = try begin()
            try await volume.replica.list([.directory("d")], open: fixture.open)
            // The first creation reserves numbers; the next ones are ahead of the database.
            for index in 0..<(isAhead ? 3 : 0) {
                _ = try volume.create(
                    "earlier \(index)", in: 1, permissions: 0o644, isWriting: true, caller: caller, registry: nil)
                try volume.replica.database.commitAll()
            }
            let made = try volume.create(
                name, in: 1, permissions: 0o644, isWriting: true, caller: caller, registry: nil, request: first)
            volume = try begin()
            let again = try volume.create(
                name, in: 1, permissions: 0o644, isWriting: true, caller: caller, registry: nil,
                request: RequestNumber(
                    rawValue: first.rawValue, isResent: true))
            #expect(made.attributes.node == again.attributes.node)
            // What is written now has to be noticed at the close.
            let file = try volume.writing(again.attributes.node, caller: nil)
            try file.descriptor.writeAll([UInt8]([1, 2, 3]).span.bytes, at: 0)
            volume.close(again.attributes.node, wasWriting: true, registry: nil)
            let row = try volume.replica.database.inode(InodeNumber(rawValue: Int64(again.attributes.node)))
            #expect(row?.size == 3 && row?.contentStamp == nil)
            #expect(
                errno {
                    try volume.create(
                        name, in: 1, permissions: 0o644, isWriting: true, caller: caller, registry: nil,
                        request: RequestNumber(rawValue: 999, isResent: true)
                    ).attributes.node
                } == .fileExists || isAhead)
        }
    }

    @Test("an unnamed file that is open has its inode; one that is not is made again") func unnamed() async throws {
        var volume = try begin()
        try await volume.replica.list([.directory("d")], open: fixture.open)
        let made = try volume.createUnnamed(
            in: 1, permissions: 0o600, isWriting: true, caller: caller, registry: nil, request: Self.request)
        let open = OpenSet()
        open.insert(InodeNumber(rawValue: Int64(made.attributes.node)))
        volume = try begin(open: open)
        let again = try volume.createUnnamed(
            in: 1, permissions: 0o600, isWriting: true, caller: caller, registry: nil, request: Self.resent)
        #expect(made.attributes.node == again.attributes.node)
        volume = try begin()
        let other = try volume.createUnnamed(
            in: 1, permissions: 0o600, isWriting: true, caller: caller, registry: nil, request: Self.resent)
        #expect(made.attributes.node != other.attributes.node && other.attributes.linkCount == 0)
    }

    @Test("an open with truncation does not truncate what was written since") func truncatingOpens() async throws {
        var volume = try begin()
        try await volume.replica.list([.file("a", size: 100)], open: fixture.open)
        let a = try node("a", volume)
        let intent = OpenIntent(isWriting: true, isTruncating: true)
        _ = try volume.open(a, for: intent, caller: caller, registry: nil, request: Self.request)
        // Another process writes by passthrough.
        try volume.writing(a, caller: nil).descriptor.writeAll([UInt8]([1, 2, 3]).span.bytes, at: 0)
        volume = try begin()
        _ = try volume.open(a, for: intent, caller: caller, registry: nil, request: Self.resent)
        #expect(try volume.attributes(of: a).size == 3)
        try volume.writing(a, caller: nil).descriptor.writeAll([UInt8]([1, 2, 3, 4]).span.bytes, at: 0)
        volume.close(a, wasWriting: true, registry: nil)
        #expect(try volume.replica.database.inode(InodeNumber(rawValue: Int64(a)))?.size == 4)
    }

    @Test("fallocate does not deallocate what was written since") func allocations() async throws {
        var volume = try begin()
        try await volume.replica.list([.file("a", size: 0)], open: fixture.open)
        let a = try node("a", volume)
        let intent = OpenIntent(isWriting: true, isTruncating: false)
        _ = try volume.open(a, for: intent, caller: caller, registry: nil)
        // FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
        try volume.allocate(a, mode: 3, offset: 0, length: 4096, request: Self.request)
        try volume.writing(a, caller: nil).descriptor.writeAll([UInt8]([1, 2, 3]).span.bytes, at: 0)
        volume = try begin()
        _ = try volume.open(a, for: intent, caller: caller, registry: nil)
        try volume.allocate(a, mode: 3, offset: 0, length: 4096, request: Self.resent)
        #expect(try volume.writing(a, caller: nil).descriptor.readBytes(at: 0, count: 3) == [1, 2, 3])
    }

    @Test("the newest 64 answers are kept, and none over a new mount") func answersAreFew() async throws {
        let volume = try begin()
        try await volume.replica.list([], open: fixture.open)
        for index in 0..<200 {
            _ = try volume.make(
                "d\(index)", in: 1, mode: 0o040755, caller: caller, request: RequestNumber(rawValue: UInt64(index)))
        }
        let database = volume.replica.database
        for index in 0..<200 {
            let isKept = try database.wasCarriedOut(RequestNumber(rawValue: UInt64(index), isResent: true))
            if index >= 136 { #expect(isKept) }
        }
        try database.forgetAnswers()
        #expect(try !database.wasCarriedOut(RequestNumber(rawValue: 199, isResent: true)))
    }

    @Test("a change that fails is not recorded") func failuresAreNotRecorded() async throws {
        let volume = try begin()
        try await volume.replica.list([.file("a")], open: fixture.open)
        #expect(
            errno { try volume.make("a", in: 1, mode: 0o040755, caller: caller, request: Self.request).node }
                == .fileExists)
        #expect(try !volume.replica.database.wasCarriedOut(Self.resent))
    }
}
