import FileProvider

/// A name on the remote and in the mount: both sides of an item, and what it is here.
package struct ItemRecord: Hashable, Sendable {
    /// The row's own number: never reused, and the item's place in listings.
    package var id: Int64
    package var inode: InodeRecord
    /// The directory that shows it; `nil` for the root, and for an item whose parent is not known here.
    package var parent: InodeNumber?
    /// The name in the mount: the remote's, unless another item came first with that name.
    package var name: String
    /// The provider's name for it; `nil` until the provider has given one.
    package var identifier: ItemIdentifier?
    package var capabilities: ItemCapabilities
    /// The item's own policy: the one that the user gave it, else its provider's.
    package var policy: ContentPolicy
    package var base: ItemBase
    /// The fields that differ between the mount and the version that the provider last acknowledged.
    package var changedFields: ItemFields
    /// The fields that the remote cannot hold: they are stored here, and the remote's values are ignored.
    package var heldFields: ItemFields
    /// The system's own name for an item that was made here: the same each time it is offered to the provider.
    package var template: Int64
    /// Whether the present change may have reached the provider already, without an answer.
    package var wasSent: Bool
    /// Whether it stays on this machine.
    package var isExcluded: Bool
    package var trashRole: TrashRole
    /// Where it was, when it lies in the trash.
    package var trash: TrashPlace?
    /// The reimport in which it is to be offered to the provider again; negative once that is done, 0 for none.
    package var reimport: Int64
    /// The name of the item that it is a conflict copy of, also once it has that name itself.
    package var conflictOf: String?

    /// Whether its identifier was given up, and the provider is to be offered it again.
    package var isToBeOffered: Bool { reimport > 0 }

    /// The fields that remote changes must not overwrite.
    package var localFields: ItemFields { changedFields.union(heldFields) }

    /// The date of the remote's that stands for the one here, which it has cut; nil if the remote has none, another or the same.
    package var truncatedDate: FileTimestamp? {
        guard heldFields.contains(.contentModificationDate), let date = base.modifiedAt,
            date != inode.modifiedAt, date.isTruncation(of: inode.modifiedAt)
        else { return nil }
        return date
    }

    /// Whether the date that is held here gives way to the remote's: that is the same, or was the one here, cut, and has been changed since.
    func isDateNoLongerHeld(for remote: FileProviderItem) -> Bool {
        guard let date = remote.contentModificationDate else { return false }
        if date == inode.modifiedAt { return true }
        // A remote that stores no dates has another one after each change.
        return truncatedDate != nil && date != base.modifiedAt && !date.isTruncation(of: inode.modifiedAt)
    }

    /// The name that it has, or had when it was trashed: what the remote is told.
    package var ownName: String { trash?.name ?? name }

    /// Whether the item has no name of its own for now, because another takes its place.
    package var isHidden: Bool { Displacement.isDisplaced(name) }

    /// Whether it is shown under another name than its own, because another item has that, and not because it was renamed here.
    package var isDecorated: Bool {
        guard let own = base.name, parent != nil, trash == nil, !isHidden, !changedFields.contains(.filename) else {
            return false
        }
        return !own.utf8.elementsEqual(name.utf8)
    }

    /// Its name for the user: while it has none of its own, the one that it is to get.
    package var nameForUser: String { isHidden ? base.name ?? name : name }

    /// Whether the remote has not got all of it, or it stays on this machine.
    var hasWork: Bool { !changedFields.isEmpty || isExcluded || identifier == nil && !isToBeOffered || hasContentWork }

    /// Whether the remote has a content of it.
    var isKnownToRemote: Bool { identifier != nil && !base.version.contentVersion.isEmpty }

    /// Whether this machine may have the only copy of its content.
    var hasContentWork: Bool {
        inode.content == .materialized && (changedFields.contains(.contents) || identifier == nil || isExcluded)
    }
}

/// The state that the provider last reported or acknowledged.
package struct ItemBase: Hashable, Sendable {
    package var parent: ItemIdentifier?
    package var name: String?
    package var version: ItemVersion
    package var size: Int64
    package var modifiedAt: FileTimestamp?
}

package struct DirectoryEntry: Hashable, Sendable {
    /// Where a listing goes on after this entry.
    package var cookie: Int64
    package var name: String
    package var inode: InodeRecord
}
