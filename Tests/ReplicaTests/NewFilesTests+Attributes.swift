import FileProvider
import ReplicaTestSupport
import Syscalls
import Testing

@testable import Replica

/// Attributes of files that are not in the database yet.
extension NewFilesTests {
    private var changes: LocalAttributes {
        var changes = LocalAttributes()
        changes.permissions = 0o4751
        changes.owner = 70
        changes.modifiedAt = .at(FileTimestamp(seconds: 1_000, nanoseconds: 5))
        changes.accessedAt = .at(FileTimestamp(seconds: 2_000, nanoseconds: 6))
        return changes
    }

    @Test("WRITE-8: a new file waits while other items are read, as in a copy within the mount")
    func readersOfOthers() async throws {
        let replica = try await prepared()
        let directory = try #require(try replica.database.lookup("d", in: .root).inode).number
        var waits = false
        // A slow machine may write it meanwhile, but not each time.
        for number in 0..<50 where !waits {
            guard let made = try make("f\(number)", in: replica) else { continue }
            for read in [directory, made.number] {
                #expect(try replica.database.allowsReading(read))
                #expect(try replica.database.extendedAttributeNames(of: read).isEmpty)
            }
            #expect(try replica.database.parent(of: directory) == .root)
            #expect(try replica.database.linkTarget(of: directory) == nil)
            #expect(try replica.database.presentRanges(of: directory).isEmpty)
            waits = try !isWritten("f\(number)", in: replica)
        }
        #expect(waits)
        let made = try #require(try make("last", in: replica))
        #expect(try replica.database.parent(of: made.number) == .root)
    }

    @Test("WRITE-8: attributes of a new file are set before the database has it, and get there")
    func attributesOfNewFiles() async throws {
        let replica = try await prepared()
        let changes = changes
        let (made, changed) = try await whileAnotherWrites(to: replica) {
            let made = try #require(try make("a", in: replica, content: "bytes"))
            let changed = try #require(replica.changeAhead(made.number, to: changes, caller: caller))
            #expect(try replica.database.inode(made.number) == changed)
            #expect(try !isWritten("a", in: replica))
            return (made, changed)
        }
        #expect(changed.permissions == 0o4751 && changed.owner == 70 && changed.group == made.group)
        #expect(changed.modifiedAt.seconds == 1_000 && changed.accessedAt?.seconds == 2_000)
        #expect(changed.changedAt > made.changedAt && changed.createdAt == made.createdAt)
        try replica.database.commitAll()
        #expect(try replica.database.inode(made.number) == changed)
        // Written files are changed in transactions.
        #expect(replica.changeAhead(made.number, to: changes, caller: caller) == nil)
        _ = try replica.change(open: fixture.open) { try $0.contents.endWriting(made.number) }
        let closed = try #require(try replica.database.inode(made.number))
        #expect(closed.size == 5 && closed.modifiedAt == changed.modifiedAt)
    }

    @Test("WRITE-8: what is set on a new file is what a transaction sets") func sameAsInATransaction() async throws {
        let replica = try await prepared()
        let setID = LocalAttributes(permissions: 0o6771)
        let group = LocalAttributes(group: 90)
        let time = LocalAttributes(accessedAt: .at(FileTimestamp(seconds: 3_000, nanoseconds: 0)))
        for (name, steps) in [
            ("s", [setID, group]), ("g", [group, setID]), ("t", [time, changes]), ("c", [changes, time]),
        ] {
            let (made, ahead) = try await whileAnotherWrites(to: replica) {
                let made = try #require(try make(name, in: replica))
                return (
                    made,
                    try #require(
                        steps.map { replica.changeAhead(made.number, to: $0, caller: caller) }.last as? InodeRecord)
                )
            }
            let other = try #require(try make(name + "2", in: replica))
            try replica.database.commitAll()
            var inTransaction = other
            for step in steps {
                inTransaction = try replica.change(open: fixture.open, changingNames: false) {
                    try $0.attributes.setAttributes(of: other.number, to: step, caller: caller)
                }.0
            }
            #expect(ahead.permissions == inTransaction.permissions && ahead.owner == inTransaction.owner)
            #expect(
                ahead.group == inTransaction.group
                    && ahead.accessedAt.map { $0 != made.createdAt }
                        == inTransaction.accessedAt.map { $0 != other.createdAt }
            )
            #expect((ahead.modifiedAt == made.modifiedAt) == (inTransaction.modifiedAt == other.modifiedAt))
        }
    }

    @Test("WRITE-8: attributes that were set survive a crash, and the request has its result")
    func attributesSurviveACrash() async throws {
        let running = try await prepared()
        let changes = changes
        let image = try await crash(running) {
            let first = try #require(try make("a", in: running))
            _ = try #require(try make("b", in: running))
            _ = try #require(
                running.changeAhead(first.number, to: changes, caller: caller, request: RequestNumber(rawValue: 8)))
        }
        let replica = try image.replica()
        let (changed, other) = (
            try replica.database.lookup("a", in: .root), try replica.database.lookup("b", in: .root)
        )
        #expect(changed.inode?.permissions == 0o4751 && changed.inode?.owner == 70)
        #expect(other.inode?.permissions == 0o640)
        #expect(try replica.names() == ["a", "b", "d", "first"])
        #expect(try replica.database.wasCarriedOut(RequestNumber(rawValue: 8, isResent: true)))
        #expect(try !replica.database.wasCarriedOut(RequestNumber(rawValue: 10, isResent: true)))
        #expect(replica.findings.isEmpty && image.recoveredFiles.isEmpty)
    }

    @Test("a length, a request that is sent again, and what may not be written are left to the transaction")
    func specialChangesRunInATransaction() async throws {
        let replica = try await prepared()
        var length = changes
        length.size = 3
        let changes = changes
        try await whileAnotherWrites(to: replica) { [length] in
            let made = try #require(try make("a", in: replica))
            #expect(replica.changeAhead(made.number, to: length, caller: caller) == nil)
            let again = RequestNumber(rawValue: 8, isResent: true)
            #expect(replica.changeAhead(made.number, to: changes, caller: caller, request: again) == nil)
            #expect(replica.changeAhead(.root, to: changes, caller: caller) == nil)
            #expect(replica.database.newFiles.inode(made.number) == made)
        }
    }

    @Test("attributes of a directory that gets new files are set in a transaction that may change names")
    func attributesOfTheirDirectory() async throws {
        let replica = try await prepared()
        let directory = try #require(try replica.number("d"))
        try await replica.list([], in: directory, open: fixture.open)
        _ = try #require(try make("x", in: replica, directory: directory))
        let changes = LocalAttributes(permissions: 0o2775, group: 77)
        _ = try replica.change(open: fixture.open, changingNames: false) {
            try $0.attributes.setAttributes(of: directory, to: changes, caller: LocalCaller(user: 0, group: 0))
        }
        #expect(try replica.database.inode(directory)?.permissions == 0o2775)
        // A new file gets its group from a directory with the set-group-ID bit.
        let made = try #require(try make("y", in: replica, directory: directory))
        #expect(made.group == 77)
    }
}
