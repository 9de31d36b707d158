import FileProvider
import Replica
import Sync
import Syscalls
import SystemPackage

/// The trash, as calls with Apple's names. Both are done here at once and reach the remote by themselves.
extension DomainHost {
    /// Moves an item into the trash: a directory with all below it. Its content stays, and what is not here of it
    /// comes.
    ///
    /// One that lies in the trash already stays as it is.
    ///
    /// - Returns: the item as it was, but for being trashed.
    /// - Throws: `featureUnsupported` where the remote has no trash; `noSuchItem`; `posix` with EACCES without the
    ///   capability `allowsTrashing` and for a parent that nothing may be taken from, with EBUSY for the root and the
    ///   trash itself, with EROFS on a domain that cannot be written.
    @discardableResult
    package func trashItem(withIdentifier identifier: ItemIdentifier) throws(FileProviderError) -> FileProviderItem {
        guard engine.hasTrash else {
            throw FileProviderError(.featureUnsupported, "the remote has no trash", itemIdentifier: identifier)
        }
        let (user, group) = (Machine.userIdentifier, Machine.groupIdentifier)
        return try act(on: identifier) { changes in try changes.trash(identifier, user: user, group: group) }
    }

    /// Takes an item out of the trash.
    ///
    /// - Parameter parent: where to; nil puts it back where it was, or into the nearest directory that is left of
    ///   where it was. Where its name is taken it gets another.
    /// - Returns: the item.
    /// - Throws: `noSuchItem` for what is not in the trash, and for the parent; `posix` with EACCES when nothing may be
    ///   added to the parent, with EINVAL when that is trashed itself and ENOTDIR when it is no directory, with EROFS on
    ///   a domain that cannot be written.
    @discardableResult
    package func untrashItem(
        withIdentifier identifier: ItemIdentifier, toParentItemIdentifier parent: ItemIdentifier? = nil
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier) { changes in try changes.untrash(identifier, to: parent) }
    }
}
