import FileProvider
import ReplicaTestSupport
import SystemPackage
import Testing

@testable import Replica

/// `.Trash` at the root would be the trash of all users.
@Suite struct SharedTrashTests {
    private static let caller = LocalCaller(user: 7, group: 8)

    @Test(
        "TRASH-10: nothing can be made as '.Trash' at the root", arguments: [InodeKind.file, .directory, .symbolicLink])
    func made(kind: InodeKind) async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        try await replica.list([], in: directory, open: fixture.open)
        let new = NewInode(kind: kind, permissions: 0o777, linkTarget: kind == .symbolicLink ? "target" : nil)
        #expect(throws: LocalObstacle.refused(.notPermitted)) {
            _ = try replica.change(open: fixture.open) {
                try $0.names.create(".Trash", in: .root, new, caller: Self.caller, usualGroup: 9)
            }
        }
        _ = try replica.change(open: fixture.open) {
            try $0.names.create(".Trash", in: directory, new, caller: Self.caller, usualGroup: 9)
        }
        #expect(try replica.names() == ["d"])
        #expect(try replica.names(in: directory) == [".Trash"])
    }

    @Test("TRASH-10: nor does anything get that name", arguments: [RenameRule.replace, .keep])
    func renamed(rule: RenameRule) async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let file = try await replica.list(.file("a", size: 0), .directory("d"), open: fixture.open)
        for name in ["a", "d"] {
            #expect(throws: LocalObstacle.refused(.notPermitted)) {
                _ = try replica.change(open: fixture.open) {
                    try $0.names.rename(name, in: .root, to: ".Trash", in: .root, rule)
                }
            }
        }
        #expect(throws: LocalObstacle.refused(.notPermitted)) {
            _ = try replica.change(open: fixture.open) { try $0.names.link(file, as: ".Trash", in: .root) }
        }
        #expect(try replica.names() == ["a", "d"])
    }

    @Test("TRASH-10: what is restored to the root gets another name") func restored() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try replica.database.set(.hasTrash, to: "1")
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        var file = FileProviderItem.file(".Trash", id: "1", in: "d")
        file.capabilities.insert(.allowsTrashing)
        try await replica.list([file], in: directory, open: fixture.open)
        _ = try replica.change(open: fixture.open) { try $0.items.trash("1", user: 0, group: 0) }
        _ = try replica.change(open: fixture.open) { try $0.items.untrash("1", to: .rootContainer) }
        let item = try #require(try replica.database.item("1"))
        #expect(item.parent == .root && item.name == ".Trash (2)" && item.trash == nil)
    }

    @Test("TRASH-10: a search for a free name does not find '.Trash' at the root") func free() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let names = try await replica.database.write { db in
            try [InodeNumber.root, directory].map { try db.freeName(for: ".Trash", in: $0) }
        }
        #expect(names == [".Trash (2)", ".Trash"])
    }
}
