import FileProvider
import ReplicaTestSupport
import Testing

@testable import Replica
@testable import Volume

/// ACLs of files whose modes change.
@Suite struct AccessListTests: VolumeSuite {
    let own: VolumeFixture
    private let attribute = "system.posix_acl_access"

    init() throws { own = try VolumeFixture() }

    /// As the kernel has it: `u::rw,u:12345:rw,g::r`, a mask and the rights of others.
    private func list(mask: UInt8, others: UInt8) -> [UInt8] {
        let none = UInt32.max
        let entries: [(UInt8, UInt8, UInt32)] = [
            (1, 6, none), (2, 6, 12345), (4, 4, none), (16, mask, none), (32, others, none),
        ]
        return entries.reduce(into: [2, 0, 0, 0]) { list, entry in
            list += [entry.0, 0, entry.1, 0]
            list += (0..<4).map { UInt8(truncatingIfNeeded: entry.2 >> (8 * $0)) }
        }
    }

    /// A file with an ACL, of which nothing is pending.
    private func fileWithList() async throws -> InodeNumber {
        let number = try await replica.list(.file("a"), open: fixture.open)
        try volume.setExtendedAttribute(
            attribute, of: UInt64(bitPattern: number.rawValue), to: list(mask: 6, others: 0), mustBeNew: false,
            mustExist: false, caller: caller, isProvided: false)
        try await replica.database.write { db in
            try db.run("UPDATE item SET changedFields = 0 WHERE inode = \(number.rawValue)", [])
        }
        return number
    }

    @Test("WRITE-10: a mode that is set here changes the ACL, and the remote gets both") func modeSetHere() async throws
    {
        let number = try await fileWithList()
        let node = UInt64(bitPattern: number.rawValue)
        #expect(try volume.attributes(of: node).permissions == 0o660)
        _ = try volume.setAttributes(of: node, to: LocalAttributes(permissions: 0o600), caller: caller)
        #expect(try volume.extendedAttribute(attribute, of: node) == list(mask: 0, others: 0))
        let item = try #require(try replica.database.item(ofInode: number))
        #expect(item.changedFields == [.permissions, .extendedAttributes])
    }

    @Test("WRITE-10: a mode that is set on a remote without ACLs changes the ACL here") func modeSetThere() async throws
    {
        let number = try await fileWithList()
        let node = UInt64(bitPattern: number.rawValue)
        var changed = FileProviderItem.file("a")
        changed.itemVersion = ItemVersion(contentVersion: "1", metadataVersion: "2")
        changed.permissions = 0o604
        try await replica.change([changed], open: fixture.open)
        #expect(try volume.attributes(of: node).permissions == 0o604)
        #expect(try volume.extendedAttribute(attribute, of: node) == list(mask: 0, others: 4))
    }
}
