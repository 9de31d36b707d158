import FileProvider
import Foundation
import Replica
import Sync
import Syscalls
import SystemPackage
import Volume

/// Actions on items, with Apple's names. Each is a local change: it is done when the call returns, and is uploaded
/// later. No call waits for the network unless its documentation says so. Each fails with `posix` and EACCES or EPERM where a system
/// call of the daemon's user would.
///
/// A new item has a temporary identifier until the provider has assigned the permanent one. Both are valid in these
/// calls. The inode stays the same.
extension DomainHost {
    /// Creates a directory.
    ///
    /// - Returns: the directory, with a temporary identifier.
    /// - Throws: `filenameCollision` with the existing item; `noSuchItem` for the parent; `posix` with EACCES if the
    ///   parent's capabilities do not allow it, with EINVAL or ENAMETOOLONG for an invalid name, and with EROFS on a
    ///   read-only domain.
    package func createDirectory(
        withName name: String, inParentItemIdentifier parent: ItemIdentifier
    ) throws(FileProviderError) -> FileProviderItem {
        let (caller, group) = (caller, Machine.groupIdentifier)
        return try act(on: parent, name: name) { changes in
            try changes.items.createDirectory(named: name, in: parent, caller: caller, usualGroup: group)
        }
    }

    /// Deletes an item permanently, a directory recursively. Directories that were never listed are listed first.
    ///
    /// - Throws: `noSuchItem`; `posix`; the provider's errors when a directory is listed.
    package func deleteItem(withIdentifier identifier: ItemIdentifier) async throws(FileProviderError) {
        do throws(FileProviderError) {
            return try act(on: identifier) { changes in try changes.items.delete(identifier) }
        } catch {
            guard error.missing != nil, let number = (try? replica.database.known(identifier))?.inode.number else {
                throw error
            }
            // Of a large tree each attempt that ends at a directory would delete much in vain, while all other changes wait.
            try await engine.listAll(below: number, request: FileProviderRequest(reason: .synchronization))
        }
        try await actListing(on: identifier) { changes in try changes.items.delete(identifier) }
    }

    /// Copies a local file into a directory.
    ///
    /// - Returns: the new file, with a temporary identifier.
    /// - Throws: as ``createDirectory(withName:inParentItemIdentifier:)``, and errors of reading and writing, after which
    ///   there is no new file.
    package func importDocument(
        at path: FilePath, toParentItemIdentifier parent: ItemIdentifier
    ) throws(FileProviderError) -> FileProviderItem {
        guard let name = path.lastComponent?.fileName else { throw FileProviderError.posix(.invalidArgument) }
        let (caller, group) = (caller, Machine.groupIdentifier)
        let source: FileDescriptor
        do {
            // Opening a FIFO would otherwise wait for its writer.
            source = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking])
        } catch {
            throw FileProviderError.posix(error as? Errno ?? .ioError, "cannot be read: \(error)")
        }
        defer { try? source.close() }
        guard let status = try? FileStatus(of: source), status.kind == .regular else {
            throw FileProviderError.posix(.invalidArgument, "not a regular file")
        }
        var imported: InodeNumber?
        defer { if let imported { volume.endImport(of: imported) } }
        let number = try act(on: parent, name: name) { changes in
            // On a full disk the transaction runs twice.
            if let imported { volume.endImport(of: imported) }
            let number = try changes.items.createFile(named: name, in: parent, caller: caller, usualGroup: group)
            volume.beginImport(of: number)
            imported = number
            return number
        }
        do {
            let file = try replica.openContentForWriting(of: number)
            defer { try? file.close() }
            let copied = try file.copy(from: source, at: 0, to: 0, count: status.size)
            guard copied == status.size else { throw Errno.ioError }
        } catch {
            _ = try? act(on: parent) { changes in
                volume.endImport(of: number)
                try changes.items.delete(try changes.items.finishFile(number).itemIdentifier)
            }
            throw FileProviderError.posix(error as? Errno ?? .ioError, "cannot be copied: \(error)")
        }
        return try act(on: parent) { changes in
            volume.endImport(of: number)
            return try changes.items.finishFile(number)
        }
    }

    /// Renames an item in its directory.
    ///
    /// - Throws: as ``createDirectory(withName:inParentItemIdentifier:)``.
    package func renameItem(
        withIdentifier identifier: ItemIdentifier, toName name: String
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier, name: name) { changes in try changes.items.move(identifier, to: nil, named: name) }
    }

    /// Moves an item to another directory, in one step also under another name. A directory that was never listed is listed first.
    ///
    /// - Parameter newName: its name there; nil keeps the one that it has.
    /// - Throws: as ``createDirectory(withName:inParentItemIdentifier:)``; `posix` with EINVAL if a directory would
    ///   become its own descendant; the provider's errors when a directory is listed.
    @discardableResult
    package func reparentItem(
        withIdentifier identifier: ItemIdentifier, toParentItemWithIdentifier parent: ItemIdentifier,
        withNewName newName: String? = nil
    ) async throws(FileProviderError) -> FileProviderItem {
        try await actListing(on: identifier, name: newName, in: parent) { changes in
            try changes.items.move(identifier, to: parent, named: newName)
        }
    }

    /// - Throws: `noSuchItem`, `posix`.
    package func setFavoriteRank(
        _ rank: Int64?, forItemIdentifier identifier: ItemIdentifier
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier) { changes in try changes.items.setFavoriteRank(rank, of: identifier) }
    }

    /// - Throws: `noSuchItem`, `posix`.
    package func setLastUsedDate(
        _ date: FileTimestamp, forItemIdentifier identifier: ItemIdentifier
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier) { changes in try changes.items.setLastUsedDate(date, of: identifier) }
    }

    /// - Throws: `noSuchItem`, `posix`.
    package func setTagData(
        _ data: [UInt8]?, forItemIdentifier identifier: ItemIdentifier
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier) { changes in try changes.items.setTagData(data, of: identifier) }
    }

    private var caller: LocalCaller {
        LocalCaller(
            user: Machine.userIdentifier, group: Machine.groupIdentifier,
            process: ProcessInfo.processInfo.processIdentifier)
    }

    /// Commands and users of the library may do what system calls of the daemon's user may.
    private var rights: CallerRights {
        let ownership = options.ownership
        return CallerRights(
            of: caller, owner: ownership.user, group: ownership.group, permissions: 0o777 & ~ownership.umask)
    }

    /// - Parameters:
    ///   - name: the name that the action gives.
    ///   - directory: where it gives the name; the item itself if nil.
    func act<Value>(
        on identifier: ItemIdentifier, name: String? = nil, in directory: ItemIdentifier? = nil,
        _ body: (LocalChanges) throws -> Value
    ) throws(FileProviderError) -> Value {
        guard !volume.isReadOnly else { throw FileProviderError.posix(.readOnlyFileSystem) }
        do {
            let (value, effects) = try replica.change(open: volume.openInodes, rights: rights, body)
            volume.noteChange(effects)
            return value
        } catch let obstacle as LocalObstacle {
            throw failure(obstacle, on: identifier, name: name, in: directory ?? identifier)
        } catch {
            throw FileProviderError.posix(.ioError, "the replica cannot be changed: \(error)")
        }
    }

    /// Acts on an item, and lists the directories that the action needs.
    private func actListing<Value>(
        on identifier: ItemIdentifier, name: String? = nil, in directory: ItemIdentifier? = nil,
        _ body: (LocalChanges) throws -> Value
    ) async throws(FileProviderError) -> Value {
        while true {
            do throws(FileProviderError) {
                return try act(on: identifier, name: name, in: directory, body)
            } catch {
                guard error.code == .ubiquitousFileUnavailable, let number = error.missing else { throw error }
                try await engine.list(number, request: FileProviderRequest(reason: .synchronization))
            }
        }
    }

    private func failure(
        _ obstacle: LocalObstacle, on identifier: ItemIdentifier, name: String?, in directory: ItemIdentifier
    ) -> FileProviderError {
        switch obstacle {
        case .refused(.noSuchFileOrDirectory), .refused(.staleNFSFileHandle):
            return FileProviderError(.noSuchItem, itemIdentifier: identifier)
        case .refused(.fileExists):
            let parent = (try? replica.database.known(directory))?.inode.number
            let holder = parent.flatMap { parent in
                name.flatMap { name in try? replica.database.item(named: name, in: parent) }
            }
            let item = holder.flatMap { try? replica.database.describe($0.localIdentifier) }
            return FileProviderError(
                .filenameCollision, "an item of this name exists in the directory", itemIdentifier: identifier,
                item: item)
        case .refused(let error):
            let message =
                switch error {
                case .resourceBusy: "the root of a domain and the directories of the trash cannot be changed"
                case .invalidArgument:
                    if let name, FileProviderItem.defect(ofFilename: name) != nil {
                        "'\(name)' is not a valid file name"
                    } else {
                        "a directory cannot be moved into itself"
                    }
                default: error.description
                }
            return FileProviderError(.posix, message, itemIdentifier: identifier, errno: error)
        case .room:
            return FileProviderError(
                .posix, "the disk with the state directory is full", itemIdentifier: identifier, errno: .noSpace)
        case .listing(let number), .content(let number):
            return FileProviderError(
                .ubiquitousFileUnavailable, itemIdentifier: identifier, underlyingErrors: [MissingInode(number: number)]
            )
        }
    }
}

extension ItemRecord {
    /// The identifier in the actions of `DomainHost`: the provider's, or a temporary one.
    var localIdentifier: ItemIdentifier { identifier ?? placeholder }
}

/// The directory that must be listed first.
private struct MissingInode: Error {
    var number: InodeNumber
}

extension FileProviderError {
    fileprivate var missing: InodeNumber? { (underlyingErrors.first as? MissingInode)?.number }
}
