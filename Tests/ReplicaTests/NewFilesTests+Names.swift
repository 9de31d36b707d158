import FileProvider
import Foundation
import ReplicaTestSupport
import Synchronization
import Testing

@testable import Replica

/// A name is checked in the database, and given in memory: files that are written in between have it in neither.
extension NewFilesTests {
    private func creation(of name: String, on rules: CreationRules) -> Creation {
        Creation(
            item: NewItem(
                kind: .file, name: name, parent: .root, capabilities: rules.capabilities, madeAt: FileTimestamp.now),
            new: NewInode(kind: .file, permissions: 0o640), owner: 7, group: 9, isWritten: true)
    }

    @Test(
        "WRITE-8: a name that another file got after it was checked is not given twice, whether that waits or is written"
    )
    func nameIsGivenOnce() async throws {
        let replica = try await prepared()
        let newFiles = replica.database.newFiles
        // The check runs while the file is only in the log, so the database does not have its name.
        let (rules, tickets) = try await whileAnotherWrites(to: replica) {
            _ = try #require(try make("a", in: replica))
            let tickets = try (0..<3).map { _ in try #require(newFiles.ticket()) }
            let (rules, isFree) = try #require(newFiles.rules(of: .root, for: "a", tickets[0]))
            #expect(try !isFree && !isWritten("a", in: replica))
            #expect(newFiles.add(creation(of: "a", on: rules), by: rules, tickets[0]) == nil)
            #expect(newFiles.renew(tickets[0]) == nil)
            return (rules, tickets)
        }
        try replica.database.commitAll()
        #expect(try isWritten("a", in: replica))
        #expect(newFiles.add(creation(of: "a", on: rules), by: rules, tickets[1]) == nil)
        // A name that is still free is given after another check.
        #expect(newFiles.add(creation(of: "b", on: rules), by: rules, tickets[2]) == nil)
        let renewed = try #require(newFiles.renew(tickets[2]))
        #expect(renewed.number == tickets[2].number)
        #expect(newFiles.add(creation(of: "b", on: rules), by: rules, renewed) != nil)
        #expect(try replica.names() == ["a", "b", "d", "first"])
    }

    @Test("WRITE-8: a lookup that began before a file was made does not hide the file, nor give its name twice")
    func staleLookups() async throws {
        let replica = try await prepared()
        let newFiles = replica.database.newFiles
        try await whileAnotherWrites(to: replica) {
            _ = try #require(try make("x", in: replica))
            let point = try #require(newFiles.beginQuery())
            _ = try #require(try make("a", in: replica))
            newFiles.noteAbsence(of: "a", in: .root, point)
            #expect(!newFiles.lacks("a", in: .root))
        }
        #expect(try replica.database.lookup("a", in: .root).inode != nil)
        // This lookup ends when the file has been written already.
        let point = try #require(newFiles.beginQuery())
        _ = try #require(try make("b", in: replica))
        try replica.database.commitAll()
        newFiles.noteAbsence(of: "b", in: .root, point)
        #expect(!newFiles.lacks("b", in: .root))
        #expect(try replica.database.lookup("b", in: .root).inode != nil)
        #expect(try make("a", in: replica) == nil && make("b", in: replica) == nil)
        #expect(try replica.names() == ["a", "b", "d", "first", "x"])
    }

    @Test("WRITE-8: of several that make one name at once while files are being written, one gets it")
    func manyMakeOneName() async throws {
        let replica = try await prepared()
        var given = 0
        for number in 0..<300 {
            let made = Mutex(0)
            DispatchQueue.concurrentPerform(iterations: 3) { task in
                if task == 2 {
                    try? replica.database.commitAll()
                } else if (try? make("f\(number)", in: replica)) != nil {
                    made.withLock { $0 += 1 }
                }
            }
            let count = made.withLock { $0 }
            #expect(count <= 1)
            given += count
        }
        #expect(given > 0)
        #expect(try replica.names().count == given + 2)
    }
}
