import FileProvider
import Replica
import Sync
import Syscalls
import SystemPackage
import Volume

/// The trash, with Apple's names. Both actions are local changes, and are uploaded later.
extension DomainHost {
    /// Moves an item to the trash, a directory with all descendants. Content that is here stays. What is missing of the item itself
    /// is downloaded, a file's content or a directory's listing; what is missing of the descendants is not, because they
    /// leave the working set. An item in the trash stays unchanged.
    ///
    /// - Throws: `featureUnsupported` if the remote has no trash; `noSuchItem`; `posix` with EACCES without the
    ///   capability `allowsTrashing` or if the parent allows no removal, with EBUSY for the root and the trash
    ///   itself, and with EROFS on a read-only domain.
    @discardableResult
    package func trashItem(withIdentifier identifier: ItemIdentifier) throws(FileProviderError) -> FileProviderItem {
        guard !volume.isReadOnly else { throw FileProviderError.posix(.readOnlyFileSystem) }
        guard engine.hasTrash else {
            throw FileProviderError(.featureUnsupported, "the remote has no trash", itemIdentifier: identifier)
        }
        let (user, group) = (Machine.userIdentifier, Machine.groupIdentifier)
        return try act(on: identifier) { changes in try changes.items.trash(identifier, user: user, group: group) }
    }

    /// Restores an item from the trash.
    ///
    /// - Parameter parent: the destination; nil for the original directory, or its nearest existing ancestor. If the
    ///   name is taken, the item gets another one.
    /// - Throws: `noSuchItem` if the item is not in the trash, and for the parent; `posix` with EACCES if the parent
    ///   allows no addition, with EINVAL if it is trashed itself, with ENOTDIR if it is not a directory, and with
    ///   EROFS on a read-only domain.
    @discardableResult
    package func untrashItem(
        withIdentifier identifier: ItemIdentifier, toParentItemIdentifier parent: ItemIdentifier? = nil
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier) { changes in try changes.items.untrash(identifier, to: parent) }
    }
}
