import FileProvider

/// A directory, as far as a change of its names depends on it. Each of these changes reads one: it has nothing of the remote's
/// side of the item.
struct DirectoryRecord: Hashable, Sendable {
    var inode: InodeRecord
    var capabilities: ItemCapabilities
    /// As ``ItemRecord/changedFields``.
    var changedFields: ItemFields
    var exclusion: Exclusion
    var trashRole: TrashRole

    /// Whether what is made in it gets its group.
    var passesGroupOn: Bool { inode.permissions.map { $0 & 0o2000 != 0 } ?? false }

    /// The group of what a caller creates in it.
    func groupOfNew(_ caller: LocalCaller, usualGroup: UInt32) -> UInt32 {
        passesGroupOn ? inode.group ?? usualGroup : caller.group
    }
}
