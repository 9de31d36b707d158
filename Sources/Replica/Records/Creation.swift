import FileNames
import FileProvider
import GRDB

/// A file, directory, link or node that is to be made.
package struct NewInode: Hashable, Sendable {
    package var kind: InodeKind
    /// The lower twelve bits of the mode; the caller's umask is not applied yet.
    package var permissions: UInt16
    package var device: UInt32
    package var linkTarget: String?

    package init(kind: InodeKind, permissions: UInt16, device: UInt32 = 0, linkTarget: String? = nil) {
        self.kind = kind
        self.permissions = permissions
        self.device = device
        self.linkTarget = linkTarget
    }
}

/// An item that is about to be created, with all that was decided about it.
struct NewItem: Hashable, Sendable {
    var kind: InodeKind
    var name: String
    var parent: InodeNumber
    var capabilities: ItemCapabilities
    var madeAt: FileTimestamp
    /// Under which it is offered to the provider, at every attempt.
    var template = ItemRecord.newTemplate()
    var role = TrashRole.none
    /// Whether it stays on this machine, whatever it is.
    var exclusion = Exclusion.none
}

/// A file, directory, link or node that is about to be made: all that was decided about it, so that making it needs no
/// further query.
struct Creation: Hashable, Sendable {
    var item: NewItem
    /// Its permissions are final.
    var new: NewInode
    var owner: UInt32
    var group: UInt32
    /// Whether it is open for writing from the beginning.
    var isWritten: Bool
    /// Times that were set since it was made; nil: when it was made.
    var modifiedAt: FileTimestamp?
    var accessedAt: FileTimestamp?
    var changedAt: FileTimestamp?

    func inode(_ number: InodeNumber) -> InodeRecord {
        InodeRecord(
            number: number, kind: new.kind, size: size, permissions: new.permissions, owner: owner, group: group,
            linkCount: 1, modifiedAt: modifiedAt ?? item.madeAt, changedAt: changedAt ?? item.madeAt,
            createdAt: item.madeAt, accessedAt: accessedAt ?? item.madeAt, device: new.device, subdirectories: 0,
            content: .materialized, contentVersion: [],
            contentGeneration: 0, localBytes: 0, contentStamp: stamp)
    }

    /// Sets attributes, as ``MetadataChanges`` does on a row.
    ///
    /// - Returns: false for a change that only a transaction can make, or refuse.
    mutating func setAttributes(to changes: LocalAttributes, caller: LocalCaller, at now: FileTimestamp) -> Bool {
        guard changes.size == nil, item.capabilities.contains(.allowsWriting) else { return false }
        var inode = inode(.root)
        inode.setAttributes(to: changes, caller: caller, at: now)
        guard let permissions = inode.permissions, let owner = inode.owner, let group = inode.group else {
            return false
        }
        new.permissions = permissions
        (self.owner, self.group) = (owner, group)
        (modifiedAt, accessedAt, changedAt) = (inode.modifiedAt, inode.accessedAt, now)
        return true
    }

    private var size: Int64 { Int64(new.linkTarget.map(FileNameText.byteCount) ?? 0) }
    private var stamp: Int64? { isWritten ? ContentStamp.unknown : nil }

    /// The arguments of ``Database/insertInode(_:as:)``.
    func inodeValues(_ number: InodeNumber?) -> [(any DatabaseValueConvertible)?] {
        let inode = inode(number ?? .root)
        return [
            number?.rawValue, new.kind.rawValue, size, Int64(new.permissions), Int64(owner), Int64(group),
            inode.modifiedAt.nanosecondsSince1970, inode.changedAt.nanosecondsSince1970,
            inode.createdAt.nanosecondsSince1970, inode.accessedAt?.nanosecondsSince1970, new.linkTarget,
            Int64(new.device), new.kind == .file, stamp,
        ]
    }
}
