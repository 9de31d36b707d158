import FileProvider
import ReplicaTestSupport
import Syscalls
import SystemPackage
import Testing

@testable import Replica

/// Files that a process has open for writing while the remote removes or replaces them.
@Suite struct RemovedWhileWritableTests {
    private let fixture: ReplicaFixture
    private let replica: Replica

    init() throws { (fixture, replica) = try ReplicaFixture.opened() }

    /// A file of the remote's whose content is here, open for writing.
    private func open(_ item: FileProviderItem, in directory: InodeNumber = .root) async throws -> InodeNumber {
        let number = try await replica.list(item, in: directory, open: fixture.open)
        try await replica.fill(number)
        fixture.open.insert(number)
        _ = try replica.change(open: fixture.open) {
            try $0.contents.beginWriting(number, truncating: false, caller: LocalCaller(user: 0, group: 0))
        }
        return number
    }

    /// Writes as the kernel does, past the daemon. The file grows, so that the clock of change times does not matter.
    private func write(to number: InodeNumber) throws {
        let file = try replica.openContentForWriting(of: number)
        try file.writeAll(Array("mine".utf8).span.bytes, at: 100)
        try file.close()
    }

    private func close(_ number: InodeNumber) async throws -> ReplicaEffects {
        var (_, effects) = try replica.change(open: fixture.open, changingNames: false) {
            try $0.contents.endWriting(number)
        }
        fixture.open.remove(number)
        effects.append(try await replica.ingest(open: fixture.open) { try $0.versions.settle(number) }.1)
        return effects
    }

    private func replace() async throws {
        try await replica.change([.file("a", id: "2", size: 7)], deleted: ["1"], open: fixture.open)
    }

    @Test(
        "CONFLICT-2: an open file with nothing written goes with its removal on the remote",
        arguments: [false, true])
    func nothingWritten(isReplaced: Bool) async throws {
        let number = try await open(.file("a", id: "1"))
        if isReplaced { try await replace() } else { try await replica.change(deleted: ["1"], open: fixture.open) }
        #expect(try replica.names() == (isReplaced ? ["a"] : []))
        #expect(try replica.database.inode(number)?.linkCount == 0)
        #expect(fixture.contentFiles == [number.description])
        let effects = try await close(number)
        #expect(effects.conflictCopies.isEmpty && effects.defects.isEmpty)
        #expect(try replica.names() == (isReplaced ? ["a"] : []))
        #expect(try replica.database.inode(number) == nil)
        #expect(try replica.database.pendingCounts().items == 0)
        #expect(fixture.contentFiles.isEmpty)
        #expect(try replica.database.defects() == [])
    }

    /// Opens a file for writing, and removes its directory on the remote.
    private func openInRemovedDirectory(_ name: String) async throws -> InodeNumber {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let number = try await open(.file(name, id: "1", in: "d"), in: directory)
        try await replica.change(deleted: ["d"], open: fixture.open)
        return number
    }

    @Test("CONFLICT-2: a removed directory does not come back for an open file with nothing written")
    func directoryOfOpenFile() async throws {
        let number = try await openInRemovedDirectory("a")
        #expect(try replica.names() == [])
        try write(to: number)
        let effects = try await close(number)
        #expect(effects.defects.contains { $0.contains("has removed the directory of 'a'") })
        #expect(try replica.names() == ["a"])
        #expect(try replica.database.defects() == [])
    }

    @Test("CONFLICT-2: nor is what is written to it lost where the directory had two names of the file")
    func twoNamesInADirectory() async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let number = try await replica.list(.file("a", id: "1", in: "d"), in: directory, open: fixture.open)
        try await replica.fill(number)
        _ = try replica.change(open: fixture.open) { try $0.names.link(number, as: "b", in: directory) }
        // As the answer to its upload leaves it.
        try await replica.database.write { db in
            try db.run(
                """
                UPDATE item SET identifier = '2', baseParent = 'd', baseName = 'b', changedFields = 0, pendingSince = NULL
                WHERE name = 'b'
                """, [])
        }
        fixture.open.insert(number)
        _ = try replica.change(open: fixture.open) {
            try $0.contents.beginWriting(number, truncating: false, caller: LocalCaller(user: 0, group: 0))
        }
        try await replica.change(deleted: ["d"], open: fixture.open)
        #expect(try replica.names() == [])
        try write(to: number)
        _ = try await close(number)
        #expect(try replica.names().count == 1)
        #expect(try replica.database.item(ofInode: number)?.changedFields.contains(.contents) == true)
        #expect(try replica.database.defects() == [])
    }

    @Test("CONFLICT-2: what is written to a file that the remote has removed from the trash is outside of the trash")
    func writtenAfterRemovalFromTheTrash() async throws {
        try replica.database.set(.hasTrash, to: "1")
        var file = FileProviderItem.file("a", id: "1")
        file.capabilities.insert(.allowsTrashing)
        let number = try await open(file)
        _ = try replica.change(open: fixture.open) { try $0.items.trash("1", user: 0, group: 0) }
        // As it is once the remote has heard of it.
        try await replica.database.write { db in
            try db.run("UPDATE item SET changedFields = 0 WHERE identifier = '1'", [])
        }
        try await replica.change(deleted: ["1"], open: fixture.open)
        #expect(try replica.database.inode(number)?.linkCount == 0)
        try write(to: number)
        let effects = try await close(number)
        #expect(effects.defects.contains { $0.contains("has removed 'a' from the trash") })
        let item = try #require(try replica.database.item(ofInode: number))
        #expect(item.name == "a" && item.parent == .root && item.changedFields.contains(.contents))
        #expect(try replica.database.defects() == [])
    }

    @Test("OPEN-4: what is written after the remote has replaced the file becomes a conflict copy")
    func writtenAfterwards() async throws {
        let number = try await open(.file("a", id: "1"))
        try await replace()
        try write(to: number)
        let effects = try await close(number)
        #expect(effects.conflictCopies.count == 1)
        let copy = try #require(try replica.database.item(ofInode: number))
        #expect(copy.name.hasPrefix("a (conflicted copy of "))
        #expect(try replica.database.originalName(ofConflictCopy: copy) == "a")
        #expect(try replica.number("2") != number)
        #expect(try replica.database.defects() == [])
    }

    @Test("OPEN-4: so is what was written before the remote replaced the file, and that no comparison had found")
    func writtenBefore() async throws {
        let number = try await open(.file("a", id: "1"))
        try write(to: number)
        let effects = try await replica.change([.file("a", id: "2", size: 7)], deleted: ["1"], open: fixture.open)
        #expect(effects.conflictCopies.count == 1)
        let copy = try #require(try replica.database.item(ofInode: number))
        #expect(copy.name.hasPrefix("a (conflicted copy of "))
        #expect(try replica.database.originalName(ofConflictCopy: copy) == "a")
        _ = try await close(number)
        #expect(try replica.names().count == 2)
        #expect(try replica.database.defects() == [])
    }

    @Test("OPEN-4: the warning of such a copy names the path of the file")
    func writtenBeforeInADirectory() async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let number = try await open(.file("a", id: "1", in: "d"), in: directory)
        try write(to: number)
        let effects = try await replica.change(
            [.file("a", id: "2", in: "d", size: 7)], deleted: ["1"], open: fixture.open)
        let warning = try #require(effects.conflictCopies.first?.text)
        #expect(warning.hasPrefix("conflict: 'd/a' was changed here and on the remote"))
    }

    @Test("OPEN-4: so is what was written to a replaced file before the daemon was killed") func killed() async throws {
        let number = try await open(.file("a", id: "1"))
        try await replace()
        try write(to: number)
        try replica.close()
        let next = try fixture.replica()
        let copy = try #require(try next.database.item(ofInode: number))
        #expect(copy.name.hasPrefix("a (conflicted copy of "))
        #expect(next.findings.contains { $0.contains("'a' was changed here and on the remote") })
        try next.close()
    }

    /// Closes a file that is a new one of its name then, and no conflict copy.
    private func closeAndExpectName(_ number: InodeNumber) async throws {
        let effects = try await close(number)
        #expect(effects.conflictCopies.isEmpty)
        let item = try #require(try replica.database.item(ofInode: number))
        #expect(item.name == "a" && item.identifier == nil && item.changedFields.contains(.contents))
        #expect(try replica.database.originalName(ofConflictCopy: item) == nil)
        #expect(try replica.database.defects() == [])
    }

    @Test("CONFLICT-2: what is written to a file that the remote has removed gets its name back")
    func writtenAfterRemoval() async throws {
        let number = try await open(.file("a", id: "1"))
        try await replica.change(deleted: ["1"], open: fixture.open)
        try write(to: number)
        try await closeAndExpectName(number)
    }

    @Test(
        "CONFLICT-2: so does what is written after the remote has removed what had replaced the file",
        arguments: ["1", "2"])
    func writtenAfterRemovalOfItsSuccessor(identifier: String) async throws {
        let number = try await open(.file("a", id: "1"))
        let successor = FileProviderItem.file("a", id: identifier, size: 7, version: "2")
        try await replica.change([successor], deleted: identifier == "1" ? [] : ["1"], open: fixture.open)
        #expect(try replica.number(identifier) != number)
        try await replica.change(deleted: [successor.itemIdentifier], open: fixture.open)
        try write(to: number)
        try await closeAndExpectName(number)
    }

    @Test("CONFLICT-2: a message says where it is if the directory of both was removed")
    func directoryOfItsSuccessor() async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let number = try await open(.file("a", id: "1", in: "d"), in: directory)
        try await replica.change([.file("a", id: "2", in: "d", size: 7)], deleted: ["1"], open: fixture.open)
        try await replica.change(deleted: ["d"], open: fixture.open)
        try write(to: number)
        let effects = try await close(number)
        #expect(effects.conflictCopies.isEmpty)
        #expect(effects.defects.contains { $0.contains("has removed the directory of 'a'") })
        #expect(try replica.names() == ["a"])
        #expect(try replica.database.defects() == [])
    }

    @Test("TRASH-10: what is written to a removed file does not become '.Trash' at the root")
    func namedAsTheSharedTrash() async throws {
        let number = try await openInRemovedDirectory(".Trash")
        try write(to: number)
        _ = try await close(number)
        #expect(try replica.names() == [".Trash (2)"])
        #expect(try replica.database.defects() == [])
    }
}
