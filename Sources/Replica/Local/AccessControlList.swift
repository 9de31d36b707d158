import FileProvider

/// A POSIX ACL in the form that the kernel gives to and takes from file systems (`linux/posix_acl_xattr.h`): a version and
/// then entries of a tag, permissions and a user or group.
struct AccessControlList: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        var tag: UInt16
        var permissions: UInt16
        var subject: UInt32
    }

    private enum Tag {
        static let owner: UInt16 = 0x01
        static let user: UInt16 = 0x02
        static let owningGroup: UInt16 = 0x04
        static let group: UInt16 = 0x08
        static let mask: UInt16 = 0x10
        static let others: UInt16 = 0x20
    }

    static let accessKey = ExtendedAttributeName.key(of: ExtendedAttributeName.accessList)
    static let defaultKey = ExtendedAttributeName.key(of: ExtendedAttributeName.defaultAccessList)

    private var entries: [Entry]
    private static let version: UInt32 = 2

    /// - Returns: nil for what is no ACL: it has another version, or lacks one of the three entries that the mode has.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 4, bytes.count % 8 == 4, Self.number(bytes[0..<4]) == Self.version else { return nil }
        entries = stride(from: 4, to: bytes.count, by: 8).map { start in
            Entry(
                tag: UInt16(truncatingIfNeeded: Self.number(bytes[start..<start + 2])),
                permissions: UInt16(truncatingIfNeeded: Self.number(bytes[start + 2..<start + 4])) & 7,
                subject: Self.number(bytes[start + 4..<start + 8]))
        }
        for tag in [Tag.owner, Tag.owningGroup, Tag.others] where entries.count(where: { $0.tag == tag }) != 1 {
            return nil
        }
    }

    var bytes: [UInt8] {
        entries.reduce(into: Self.bytes(Self.version)) { bytes, entry in
            bytes += Self.bytes(UInt32(entry.tag) | UInt32(entry.permissions) << 16) + Self.bytes(entry.subject)
        }
    }

    /// Whether it grants rights to a caller who is not the owner. (acl(5), "Access check algorithm")
    func allows(_ wanted: UInt16, to caller: LocalCaller, owningGroup: UInt32) -> Bool {
        let mask = entries.first { $0.tag == Tag.mask }?.permissions ?? 7
        if let own = entries.first(where: { $0.tag == Tag.user && $0.subject == caller.user }) {
            return own.permissions & mask & wanted == wanted
        }
        let groups = entries.filter { entry in
            entry.tag == Tag.owningGroup && caller.belongs(to: owningGroup)
                || entry.tag == Tag.group && caller.belongs(to: entry.subject)
        }
        if !groups.isEmpty { return groups.contains { $0.permissions & mask & wanted == wanted } }
        return permissions(of: Tag.others) & wanted == wanted
    }

    /// Whether it says no more than a mode does.
    var isMinimal: Bool { entries.count == 3 }

    /// The lower nine bits of the mode. Those of the group are the mask, where there is one.
    ///
    /// Setting them is what `chmod(2)` does to an ACL.
    var mode: UInt16 {
        get { permissions(of: Tag.owner) << 6 | permissions(of: groupTag) << 3 | permissions(of: Tag.others) }
        set {
            set(Tag.owner, to: newValue >> 6 & 7)
            set(groupTag, to: newValue >> 3 & 7)
            set(Tag.others, to: newValue & 7)
        }
    }

    private var groupTag: UInt16 { entries.contains { $0.tag == Tag.mask } ? Tag.mask : Tag.owningGroup }

    private func permissions(of tag: UInt16) -> UInt16 { entries.first { $0.tag == tag }?.permissions ?? 0 }

    private mutating func set(_ tag: UInt16, to permissions: UInt16) {
        for index in entries.indices where entries[index].tag == tag { entries[index].permissions = permissions }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
