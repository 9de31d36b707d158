import FileNames
import FileProvider
import GRDB

/// A file, directory, link or node that is to be made.
package struct NewInode: Hashable, Sendable {
    package var kind: InodeKind
    /// The lower twelve bits of the mode; the caller's umask is not applied yet.
    package var permissions: UInt16
    package var device: UInt32
    /// The target of a symbolic link.
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
/// more looking.
struct Creation: Hashable, Sendable {
    var item: NewItem
    /// Its permissions are final.
    var new: NewInode
    var owner: UInt32
    var group: UInt32
    /// Whether it is open for writing from the beginning.
    var isWritten: Bool

    /// The inode that is made by it.
    func inode(_ number: InodeNumber) -> InodeRecord {
        InodeRecord(
            number: number, kind: new.kind, size: size, permissions: new.permissions, owner: owner, group: group,
            linkCount: 1, modifiedAt: item.madeAt, changedAt: item.madeAt, createdAt: item.madeAt,
            accessedAt: item.madeAt, device: new.device, subdirectories: 0, content: .materialized, contentVersion: [],
            contentGeneration: 0, localBytes: 0, contentStamp: stamp)
    }

    private var size: Int64 { Int64(new.linkTarget.map(FileNameText.byteCount) ?? 0) }
    private var stamp: Int64? { isWritten ? ContentStamp.unknown : nil }

    /// The arguments of ``Database/insertInode(_:as:)``.
    func inodeValues(_ number: InodeNumber?) -> StatementArguments {
        let now = item.madeAt.nanosecondsSince1970
        return [
            number?.rawValue, new.kind.rawValue, size, Int64(new.permissions), Int64(owner), Int64(group), now, now,
            now,
            now, new.linkTarget, Int64(new.device), new.kind == .file, stamp,
        ]
    }
}
