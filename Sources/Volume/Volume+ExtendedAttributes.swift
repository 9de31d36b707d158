import FileProvider
import Replica
import Syscalls
import SystemPackage

/// The attributes that the daemon answers for every item. They are not listed, so that copies and backups do not
/// contain them.
package enum YonderAttribute: String, CaseIterable, Sendable {
    case content = "user.yonder.content"
    case sync = "user.yonder.sync"
    case identifier = "user.yonder.id"
    case version = "user.yonder.version"
    case policy = "user.yonder.policy"
    case error = "user.yonder.error"
    case evict = "user.yonder.evict"
    case download = "user.yonder.download"
    case upload = "user.yonder.upload"

    static let prefix = "user.yonder."

    /// Whether setting it does something to the item and to all below.
    var isAction: Bool { [.policy, .evict, .download, .upload].contains(self) }

    /// Setting it changes nothing; it makes the kernel report `IN_ATTRIB` to watchers of the item.
    package static let changed = "system.yonder.changed"
}

extension Volume {
    package func extendedAttribute(_ name: String, of node: UInt64) throws(VolumeError) -> [UInt8] {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        if name.utf8.starts(with: YonderAttribute.prefix.utf8) {
            guard let attribute = YonderAttribute(rawValue: name), let value = try value(of: attribute, for: number)
            else { throw .refused(.noData) }
            return Array(value.utf8)
        }
        let stored = try Self.storedName(name)
        guard let value = try known({ try replica.database.extendedAttribute(stored, of: number) }) else {
            throw .refused(.noData)
        }
        return value
    }

    /// The names of the item's own attributes. Those of the `trusted.` namespace are listed for root only
    /// (`xattr(7)`), which the kernel does not enforce.
    package func extendedAttributeNames(of node: UInt64, caller: Requester) throws(VolumeError) -> [String] {
        let number = InodeNumber(rawValue: Int64(bitPattern: node))
        let names = try known { try replica.database.extendedAttributeNames(of: number) }
            .map(ExtendedAttributeName.fullName)
        return caller.userIdentifier == 0 ? names : names.filter { !$0.utf8.starts(with: "trusted.".utf8) }
    }

    /// Sets an attribute, or starts the action of one of the daemon's attributes.
    ///
    /// - Parameter isProvided: whether the action has been done.
    package func setExtendedAttribute(
        _ name: String, of node: UInt64, to value: [UInt8], mustBeNew: Bool, mustExist: Bool, caller: Requester,
        isProvided: Bool, request: RequestNumber? = nil
    ) throws(VolumeError) {
        let number = InodeNumber(node)
        if name == YonderAttribute.changed { return }
        if name.utf8.starts(with: YonderAttribute.prefix.utf8) {
            if isProvided { return }
            let attribute = YonderAttribute(rawValue: name)
            if attribute?.isAction == true { try requireOwner(of: number, caller) }
            switch attribute {
            case .evict: throw .needs(.eviction(of: number))
            case .download: throw .needs(.download(of: number))
            case .upload: throw .needs(.upload(of: number))
            case .content, .sync, .identifier, .version, .error: throw .refused(.notPermitted)
            case .policy: return try setPolicy(value, of: number)
            case nil: throw .refused(.notSupported)
            }
        }
        let stored = try Self.storedName(name)
        try change(request, .nothing) {
            try $0.attributes.setExtendedAttribute(
                stored, of: number, to: value, mustBeNew: mustBeNew, mustExist: mustExist,
                caller: LocalCaller(caller))
        }
    }

    package func removeExtendedAttribute(
        _ name: String, of node: UInt64, caller: Requester, request: RequestNumber? = nil
    ) throws(VolumeError) {
        if name.utf8.starts(with: YonderAttribute.prefix.utf8) {
            guard YonderAttribute(rawValue: name) == .policy else { throw .refused(.notPermitted) }
            try requireOwner(of: InodeNumber(node), caller)
            return try setPolicy(nil, of: InodeNumber(node))
        }
        let stored = try Self.storedName(name)
        try change(request, .nothing) { try $0.attributes.removeExtendedAttribute(stored, of: InodeNumber(node)) }
    }

    /// The kernel requires that the caller may write the item. What is done to a directory is done to all that it contains,
    /// which the caller may have no access to.
    ///
    /// - Throws: EPERM when another user asks for that.
    private func requireOwner(of number: InodeNumber, _ caller: Requester) throws(VolumeError) {
        let user = caller.userIdentifier
        guard user != 0, user != Machine.userIdentifier, let inode = try known({ try replica.database.inode(number) }),
            inode.kind == .directory, user != inode.owner ?? ownership.user
        else { return }
        throw .refused(.notPermitted)
    }

    /// Sets the content policy of an item, also on a read-only mount, because it does not change the remote.
    ///
    /// - Parameter policy: nil resets it.
    package func setPolicy(_ policy: ContentPolicy?, of number: InodeNumber) throws(VolumeError) {
        guard try known({ try replica.setPolicy(policy, of: number) }) else { throw .refused(.staleNFSFileHandle) }
        observer.volumeDidChange(ReplicaEffects())
    }

    private func setPolicy(_ value: [UInt8], of number: InodeNumber) throws(VolumeError) {
        // Ignores the line end of `echo` and the terminator of C strings.
        let text = value.reversed().drop { $0 == UInt8(ascii: "\n") || $0 == 0 }.reversed()
        guard let policy = ContentPolicy(name: String(decoding: text, as: UTF8.self)) else {
            throw .refused(.invalidArgument)
        }
        try setPolicy(policy, of: number)
    }

    private func value(of attribute: YonderAttribute, for number: InodeNumber) throws(VolumeError) -> String? {
        guard let item = try known({ try replica.database.item(ofInode: number) }) else {
            throw .refused(.staleNFSFileHandle)
        }
        switch attribute {
        case .content: return item.inode.shownContent.name
        case .sync: return try known { try observer.syncState(of: item) }.rawValue
        case .identifier: return item.identifier?.rawValue
        case .version: return item.base.version.contentVersion.printable
        case .policy: return item.policy.name
        case .error: return try known { try replica.database.failure(of: number) }.map { "\($0.code): \($0.message)" }
        case .evict, .download, .upload: return nil
        }
    }

    /// The stored key of an attribute.
    ///
    /// - Throws: ENOTSUP for a namespace that is not stored; EINVAL for an empty name. The kernel has checked
    ///   permissions: `trusted.` and `security.` need capabilities, an ACL the owner.
    private static func storedName(_ name: String) throws(VolumeError) -> String {
        guard ExtendedAttributeName.isKept(name) else { throw .refused(.notSupported) }
        guard name.utf8.last != UInt8(ascii: ".") || name.utf8.count(where: { $0 == UInt8(ascii: ".") }) > 1 else {
            throw .refused(.invalidArgument)
        }
        return ExtendedAttributeName.key(of: name)
    }
}

extension [UInt8] {
    /// The bytes as text if they are UTF-8, else in hexadecimal; nil for none.
    package var printable: String? {
        if isEmpty { return nil }
        if let text = String(validating: self, as: UTF8.self), !text.unicodeScalars.contains(where: { $0.value < 0x20 })
        {
            return text
        }
        return reduce(into: "") { text, byte in
            text.append(Character(Unicode.Scalar("0123456789abcdef".utf8.map { $0 }[Int(byte >> 4)])))
            text.append(Character(Unicode.Scalar("0123456789abcdef".utf8.map { $0 }[Int(byte & 15)])))
        }
    }
}
