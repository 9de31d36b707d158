import FileProvider
import GRDB
import SystemPackage

/// POSIX ACLs. The kernel checks permissions by them, and leaves it to the file system to keep mode and ACL in step
/// (FUSE_POSIX_ACL): `acl(5)` says how.
struct AccessControl: LocalPart {
    let transaction: LocalTransaction

    /// What is made in a directory that has a default ACL gets its ACL from there, and then no umask applies. Else the
    /// umask does.
    ///
    /// - Parameter new: gets the permissions that result.
    /// - Returns: the extended attributes of the new inode.
    func inheritAccess(
        by new: inout NewInode, in directory: InodeNumber, caller: LocalCaller
    ) throws -> [String: [UInt8]] {
        guard new.kind != .symbolicLink else { return [:] }
        guard let value = try db.extendedAttribute(AccessControlList.defaultKey, of: directory),
            let inherited = AccessControlList(value)
        else {
            new.permissions &= ~caller.umask
            return [:]
        }
        var own = inherited
        own.mode &= new.permissions
        new.permissions = new.permissions & ~0o777 | own.mode
        var attributes: [String: [UInt8]] = [:]
        if !own.isMinimal { attributes[AccessControlList.accessKey] = own.bytes }
        if new.kind == .directory { attributes[AccessControlList.defaultKey] = value }
        return attributes
    }

    /// Writes the extended attributes of an inode that was just made.
    func insert(_ attributes: [String: [UInt8]], of number: InodeNumber) throws {
        guard !attributes.isEmpty else { return }
        for (name, value) in attributes { try db.setExtendedAttribute(name, of: number, to: value) }
        try mark(.extendedAttributes, of: number)
    }

    /// The access ACL of an inode was set: the mode follows it, and what the mode says by itself is not kept.
    ///
    /// - Throws: ``LocalObstacle``: EINVAL for what is no ACL.
    func accessListWasSet(_ value: [UInt8], of number: InodeNumber, caller: LocalCaller) throws {
        guard let list = AccessControlList(value) else { throw LocalObstacle.refused(.invalidArgument) }
        var record = try inode(number)
        let before = record.permissions ?? InodeRecord.usualPermissions(of: record.kind)
        var mode = before & ~0o777 | list.mode
        if !caller.isPrivileged, !caller.belongs(to: record.group) { mode &= ~0o2000 }
        if list.isMinimal { try db.removeExtendedAttribute(AccessControlList.accessKey, of: number) }
        guard mode != before else { return }
        record.permissions = mode
        try db.writeAttributes(of: record)
        try mark(.permissions, of: number)
    }

    /// The mode was set: the ACL follows it, also on the remote, which may keep both by themselves.
    func permissionsWereSet(to permissions: UInt16, of number: InodeNumber) throws {
        if try db.setAccessList(of: number, toMode: permissions) { try mark(.extendedAttributes, of: number) }
    }

    /// A file's owner or content is changed: its capabilities go, as FUSE_HANDLE_KILLPRIV_V2 asks for.
    func takeCapabilities(of number: InodeNumber) throws {
        guard try db.removeExtendedAttribute(Self.capabilityKey, of: number) else { return }
        try mark(.extendedAttributes, of: number)
    }

    private static let capabilityKey = ExtendedAttributeName.key(of: "security.capability")
}

extension Database {
    /// Does to the access ACL of an inode what `chmod(2)` does.
    ///
    /// - Returns: whether it has one, which was another one before.
    @discardableResult
    func setAccessList(of number: InodeNumber, toMode permissions: UInt16) throws -> Bool {
        guard let value = try extendedAttribute(AccessControlList.accessKey, of: number),
            var list = AccessControlList(value), list.mode != permissions & 0o777
        else { return false }
        list.mode = permissions & 0o777
        try setExtendedAttribute(AccessControlList.accessKey, of: number, to: list.bytes)
        return true
    }
}

extension InodeRecord {
    /// The permissions of what the remote says none of.
    package static func usualPermissions(of kind: InodeKind) -> UInt16 {
        switch kind {
        case .directory: 0o755
        case .symbolicLink: 0o777
        case .file, .fifo, .characterDevice, .blockDevice, .socket: 0o644
        }
    }
}
