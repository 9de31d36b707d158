import FileProvider
import Foundation
import ReplicaTestSupport
import Syscalls
import SystemPackage
import Testing

@testable import Replica

/// What is kept of a replica that is to be removed.
@Suite struct KeepingTests {
    let fixture: ReplicaFixture
    let replica: Replica
    let folder: FilePath

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
        folder = fixture.directory.appending("kept")
        try folder.makeDirectory()
    }

    private let caller = LocalCaller(user: Machine.userIdentifier, group: Machine.groupIdentifier)

    @discardableResult
    private func write(_ text: String, to name: String, in directory: InodeNumber) throws -> InodeNumber {
        let made = try replica.change(open: NothingOpen()) {
            try $0.names.createFile(
                name, in: directory, permissions: 0o644, caller: caller, usualGroup: Machine.groupIdentifier)
        }.0
        try made.content.close()
        let content = try FileDescriptor.open(replica.contents.path(of: made.inode.number), .writeOnly)
        try content.closeAfter { _ = try content.writeAll(Array(text.utf8)) }
        _ = try replica.change(open: NothingOpen()) { try $0.contents.endWriting(made.inode.number) }
        return made.inode.number
    }

    private func keep() throws -> KeptSummary {
        var keeping = Keeping(replica, in: folder, onlyDirty: true)
        return try keeping.run(domain: "d", source: "/source") { _ in }
    }

    private func text(_ path: String) -> String? {
        (try? FilePath(folder.string + "/" + path).contents()).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("REMOVE-1: what was written below a directory that lies in no other is kept") func withoutDirectory()
        async throws
    {
        let outer = try await replica.list(.directory("d"), open: fixture.open)
        try await replica.list([.directory("e", in: "d"), .file("there", in: "d")], in: outer, open: fixture.open)
        let inner = try #require(try replica.number("e"))
        try await replica.list([], in: inner, open: fixture.open)
        try write("outer", to: "mine", in: outer)
        try write("inner", to: "mine", in: inner)
        _ = try replica.change(open: NothingOpen()) { changes in
            for new in [
                NewInode(kind: .symbolicLink, permissions: 0o777, linkTarget: "target"),
                NewInode(kind: .directory, permissions: 0o755),
            ] {
                _ = try changes.names.create(
                    new.kind == .directory ? "empty" : "link", in: inner, new, caller: caller,
                    usualGroup: Machine.groupIdentifier)
            }
        }
        let row = try #require(try replica.database.item(ItemIdentifier("d"))).id
        // As the remote's move of the directory into one that is not known here leaves it.
        try await replica.database.write { db in
            try db.move(row, to: nil, named: Displacement.name(forItem: row))
        }
        #expect(try replica.unsynced().items >= 2)
        let summary = try keep()
        #expect(summary.files == 2 && summary.items == 4)
        let kept = folder.string + "/recovered/d (\(row))/e"
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: kept + "/link") == "target")
        #expect(try FileManager.default.contentsOfDirectory(atPath: kept + "/empty") == [])
        #expect(text("recovered/d (\(row))/mine") == "outer" && text("recovered/d (\(row))/e/mine") == "inner")
        #expect(text("recovered/d (\(row))/there") == nil)
    }

    @Test("REMOVE-1: a FIFO below a directory that lies in no other is kept, and what cannot be kept is named")
    func special() async throws {
        let outer = try await replica.list(.directory("d"), open: fixture.open)
        try await replica.list([], in: outer, open: fixture.open)
        let link = try replica.change(open: NothingOpen()) { changes in
            for new in [
                NewInode(kind: .fifo, permissions: 0o600), NewInode(kind: .socket, permissions: 0o600),
                NewInode(kind: .characterDevice, permissions: 0o600, device: 259),
            ] {
                _ = try changes.names.create(
                    "\(new.kind)", in: outer, new, caller: caller, usualGroup: Machine.groupIdentifier)
            }
            return try changes.names.create(
                "link", in: .root, NewInode(kind: .symbolicLink, permissions: 0o777, linkTarget: "lost"),
                caller: caller,
                usualGroup: Machine.groupIdentifier)
        }.0.number
        let row = try #require(try replica.database.item(ItemIdentifier("d"))).id
        try await replica.database.write { db in
            try db.run("UPDATE inode SET linkTarget = NULL WHERE number = ?", [link.rawValue])
            try db.move(row, to: nil, named: Displacement.name(forItem: row))
        }
        let summary = try keep()
        let kept = "recovered/d (\(row))"
        #expect(try FileStatus(at: FilePath("\(folder)/\(kept)/fifo")).kind == .special)
        #expect(
            Set(summary.notKept.map { "'\($0.path)' is \($0.what)" }) == [
                "'files/link' is a link, and it is not known what it points to", "'\(kept)/socket' is a socket",
                "'\(kept)/characterDevice' is a device (number 259), which is not made outside of a mount",
            ])
        let manifest = try #require(try ManifestReader(in: folder))
        var paths: [String] = []
        try manifest.read(items: { paths.append($0.path) }, removed: { _ in })
        #expect(paths == ["link"])
    }

    @Test("REMOVE-1: of trashed items with one name in the trashes of several users all are kept") func sameName()
        async throws
    {
        try await replica.list([], open: fixture.open)
        for user in [UInt32(1), 2] {
            try write("\(user)", to: "f\(user).txt", in: .root)
            let directory = try replica.change(open: NothingOpen()) {
                try $0.names.create(
                    "d\(user)", in: .root, NewInode(kind: .directory, permissions: 0o755), caller: caller,
                    usualGroup: Machine.groupIdentifier)
            }.0.number
            try write("\(user)", to: "inside", in: directory)
            let contents = replica.contents
            try await replica.database.write { db in
                var directories = TrashDirectories(db: db, contents: contents, now: FileTimestamp.now)
                let trash = try directories.trash(of: user, group: user)
                for (name, trashed) in [("f\(user).txt", "f.txt"), ("d\(user)", "d")] {
                    guard let item = try db.item(named: name, in: .root) else { continue }
                    try db.move(item.id, to: trash.files, named: trashed)
                }
            }
        }
        #expect(try keep().files == 4)
        #expect(text("trash/f.txt") == "1" && text("trash/f (2).txt") == "2")
        #expect(text("trash/d/inside") == "1" && text("trash/d (2)/inside") == "2")
    }

    @Test("REMOVE-1: what lies in a user's trash directory beside its files is kept") func besideTrashedFiles()
        async throws
    {
        try await replica.list([], open: fixture.open)
        let contents = replica.contents
        let top = try await replica.database.write { db in
            var directories = TrashDirectories(db: db, contents: contents, now: FileTimestamp.now)
            _ = try directories.trash(of: 0, group: 0)
            return try db.item(named: ".Trash-0", in: .root)?.inode.number
        }
        let directory = try #require(top)
        try write("report", to: "report.odt", in: directory)
        #expect(try replica.unsynced().items == 1)
        let summary = try keep()
        #expect(summary.files == 1 && summary.items == 1)
        #expect(text("trash/report.odt") == "report")
    }

    @Test("IMPORT-5: a kept directory with an ignored name stays on this machine, with what was added, and is listed")
    func addedToIgnored() async throws {
        let names = IgnoredNames(["built"])
        try replica.ignore(names)
        try await replica.list([], open: fixture.open)
        let built = try replica.change(open: NothingOpen()) {
            try $0.names.create(
                "built", in: .root, NewInode(kind: .directory, permissions: 0o755), caller: caller,
                usualGroup: Machine.groupIdentifier)
        }.0.number
        try write("old", to: "old", in: built)
        _ = try keep()
        let added = folder.appending("files").appending("built").appending("added")
        try added.makeDirectory()
        try "new".write(toFile: added.appending("new").string, atomically: false, encoding: .utf8)
        let (other, imported) = try ReplicaFixture.opened()
        defer { withExtendedLifetime(other) {} }
        var importing = try Importing(imported, from: folder)
        _ = try importing.run { _ in }
        try imported.ignore(names)
        var directory = InodeNumber.root
        for name in ["built", "added", "new"] {
            let item = try #require(try imported.database.item(named: name, in: directory))
            #expect(try imported.database.exclusion(of: item) == .name, "\(name)")
            #expect(item.inode.content == .materialized, "\(name)")
            directory = item.inode.number
        }
    }
}
