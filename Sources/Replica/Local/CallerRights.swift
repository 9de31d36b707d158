/// The rights of a caller whose changes do not come over the kernel, which checks the modes of directories for all others
/// (`default_permissions`).
package struct CallerRights: Sendable {
    private let caller: LocalCaller
    private let owner: UInt32
    private let group: UInt32
    private let permissions: UInt16

    /// - Parameters:
    ///   - caller: with its process, which says in which groups it is.
    ///   - owner: the owner of items that say none, and likewise `group`.
    ///   - permissions: of directories that say none.
    package init(of caller: LocalCaller, owner: UInt32, group: UInt32, permissions: UInt16) {
        self.caller = caller
        self.owner = owner
        self.group = group
        self.permissions = permissions
    }

    /// The bits of one class of a mode.
    enum Right {
        static let writing: UInt16 = 2
        static let searching: UInt16 = 1
    }

    /// - Parameter list: the directory's ACL; nil for none.
    func allow(_ wanted: UInt16, in directory: InodeRecord, _ list: AccessControlList?) -> Bool {
        if caller.isPrivileged { return true }
        let (mode, group) = (directory.permissions ?? permissions, directory.group ?? group)
        if owns(directory) { return mode >> 6 & wanted == wanted }
        if let list { return list.allows(wanted, to: caller, owningGroup: group) }
        return (caller.belongs(to: group) ? mode >> 3 : mode) & wanted == wanted
    }

    /// Whether the sticky bit of a directory lets the caller remove an item from it.
    func allowRemoving(_ item: InodeRecord, from directory: InodeRecord) -> Bool {
        let isSticky = (directory.permissions ?? permissions) & 0o1000 != 0
        return !isSticky || caller.isPrivileged || owns(item) || owns(directory)
    }

    private func owns(_ inode: InodeRecord) -> Bool { caller.user == inode.owner ?? owner }
}
