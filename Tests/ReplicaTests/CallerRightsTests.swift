import FileProvider
import Foundation
import ReplicaTestSupport
import SystemPackage
import Testing

@testable import Replica

/// The modes of directories decide over changes that do not come over the kernel.
@Suite struct CallerRightsTests {
    private static let user: UInt32 = 7
    private let fixture: ReplicaFixture
    private let replica: Replica

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    private func item(
        _ item: FileProviderItem, _ permissions: UInt16, owner: UInt32 = Self.user, group: UInt32 = 9
    ) -> FileProviderItem {
        var item = item
        (item.permissions, item.owner, item.group) = (permissions, owner, group)
        return item
    }

    private func list(_ items: FileProviderItem..., in directory: String? = nil) async throws {
        let number = try directory.map { try #require(try replica.number($0)) }
        try await replica.list(items, in: number ?? .root, open: fixture.open)
    }

    /// The error of an action of a user with the group 9.
    private func refusal(of user: UInt32 = Self.user, _ body: (ItemActions) throws -> Void) throws -> Errno? {
        let rights = CallerRights(
            of: LocalCaller(user: user, group: 9, process: ProcessInfo.processInfo.processIdentifier), owner: Self.user,
            group: 9, permissions: 0o755)
        do {
            _ = try replica.change(open: fixture.open, rights: rights) { try body($0.items) }
            return nil
        } catch LocalObstacle.refused(let error) {
            return error
        }
    }

    private func making(in directory: ItemIdentifier, by user: UInt32 = Self.user) throws -> Errno? {
        try refusal(of: user) { items in
            _ = try items.createDirectory(
                named: "by \(user)", in: directory, caller: LocalCaller(user: user, group: 9), usualGroup: 9)
        }
    }

    @Test("CMD-1: a name is made only where the caller may write and search, in each class of a mode") func modes()
        async throws
    {
        try await list(
            item(.directory("own"), 0o577), item(.directory("group"), 0o757, owner: 1),
            item(.directory("others"), 0o775, owner: 1, group: 4_000_000_000), .directory("usual"),
            item(.directory("closed"), 0o600), item(.directory("open"), 0o777, owner: 1))
        try await list(item(.directory("below", in: "closed"), 0o777), in: "closed")
        for directory in ["own", "group", "others", "below"] as [ItemIdentifier] {
            #expect(try making(in: directory) == .permissionDenied, "\(directory)")
            #expect(try making(in: directory, by: 0) == nil, "\(directory)")
        }
        #expect(try making(in: "usual") == nil)
        #expect(try making(in: "open") == nil)
        #expect(try making(in: "usual", by: 8) == .permissionDenied)
    }

    @Test("CMD-1: an ACL decides for a user that it names") func lists() async throws {
        try await list(item(.directory("d"), 0o777, owner: 1))
        let number = try #require(try replica.number("d"))
        // Version 2; the owner, user 7 without writing, the owning group, the mask and the others.
        let entries: [(tag: UInt8, permissions: UInt8, subject: UInt8)] = [
            (1, 7, 255), (2, 5, 7), (4, 7, 255), (16, 7, 255), (32, 7, 255),
        ]
        var bytes: [UInt8] = [2, 0, 0, 0]
        for entry in entries { bytes += [entry.tag, 0, entry.permissions, 0, entry.subject, 0, 0, 0] }
        try replica.database.write(.everything) { db in
            try db.setExtendedAttribute(AccessControlList.accessKey, of: number, to: bytes)
        }
        #expect(try making(in: "d") == .permissionDenied)
        #expect(try making(in: "d", by: 8) == nil)
    }

    @Test("CMD-1: an item is renamed, moved and deleted as the system calls allow it") func taking()
        async throws
    {
        try await list(
            item(.directory("fixed"), 0o555), item(.directory("sticky"), 0o1777, owner: 1),
            item(.directory("tree"), 0o755), item(.directory("open"), 0o777))
        try await list(.file("a", in: "fixed"), in: "fixed")
        try await list(item(.file("theirs", in: "sticky"), 0o666, owner: 1), .file("mine", in: "sticky"), in: "sticky")
        try await list(item(.directory("inner", in: "tree"), 0o555), in: "tree")
        try await list(.file("b", in: "inner"), in: "inner")
        #expect(try refusal { _ = try $0.move("a", to: nil, named: "x") } == .permissionDenied)
        #expect(try refusal { _ = try $0.move("a", to: "open", named: nil) } == .permissionDenied)
        #expect(try refusal { _ = try $0.move("mine", to: "fixed", named: nil) } == .permissionDenied)
        #expect(try refusal { try $0.delete("a") } == .permissionDenied)
        #expect(try refusal { try $0.delete("tree") } == .permissionDenied)
        // Its '..' would change.
        #expect(try refusal { _ = try $0.move("inner", to: "open", named: nil) } == .permissionDenied)
        #expect(try refusal { _ = try $0.move("inner", to: nil, named: "renamed") } == nil)
        #expect(try refusal { try $0.delete("theirs") } == .notPermitted)
        #expect(try refusal { try $0.delete("mine") } == nil)
        #expect(try refusal(of: 0) { try $0.delete("theirs") } == nil)
        #expect(try replica.database.defects() == [])
    }
}
