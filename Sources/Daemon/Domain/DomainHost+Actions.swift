import FileProvider
import Foundation
import Replica
import Sync
import Syscalls
import SystemPackage
import Volume

/// What people do with items, as calls with Apple's names. Each is done here at once, and reaches the remote by itself:
/// no call waits for the network, unless it says so.
///
/// An item that is new has a temporary identifier until the remote has given the permanent one; both name it in these
/// calls. Its inode stays the same.
extension DomainHost {
    /// Makes a directory.
    ///
    /// - Returns: the directory: complete, and with a temporary identifier.
    /// - Throws: `filenameCollision` with the item in the way, `noSuchItem` for the parent; `posix` with EACCES when the
    ///   parent's capabilities do not allow it, with EINVAL or ENAMETOOLONG for a name that Linux does not take, with
    ///   EROFS on a domain that cannot be written.
    package func createDirectory(
        withName name: String, inParentItemIdentifier parent: ItemIdentifier
    ) throws(FileProviderError) -> FileProviderItem {
        let (caller, group) = (caller, Machine.groupIdentifier)
        return try act(on: parent, name: name) { changes in
            try changes.createDirectory(named: name, in: parent, caller: caller, usualGroup: group)
        }
    }

    /// Deletes an item for good, a directory with all below it. What was never listed is listed first.
    ///
    /// - Throws: `noSuchItem`, `posix`, what the provider says when it has to be asked.
    package func deleteItem(withIdentifier identifier: ItemIdentifier) async throws(FileProviderError) {
        while true {
            do throws(FileProviderError) {
                return try act(on: identifier) { changes in try changes.delete(identifier) }
            } catch {
                guard error.code == .ubiquitousFileUnavailable, let number = error.missing else { throw error }
                try await engine.list(number, request: FileProviderRequest(reason: .synchronization))
            }
        }
    }

    /// Copies a file of this machine into a directory.
    ///
    /// - Returns: the new file, with a temporary identifier.
    /// - Throws: as ``createDirectory(withName:inParentItemIdentifier:)``, and what reading and writing say.
    package func importDocument(
        at path: FilePath, toParentItemIdentifier parent: ItemIdentifier
    ) throws(FileProviderError) -> FileProviderItem {
        guard let name = path.lastComponent?.string else { throw FileProviderError.posix(.invalidArgument) }
        let (caller, group) = (caller, Machine.groupIdentifier)
        let source: FileDescriptor
        let size: Int64
        do {
            source = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
            size = try source.lengths().size
        } catch {
            throw FileProviderError.posix(error as? Errno ?? .ioError, "'\(path)' cannot be read: \(error)")
        }
        defer { try? source.close() }
        let number = try act(on: parent, name: name) { changes in
            try changes.createFile(named: name, in: parent, caller: caller, usualGroup: group)
        }
        do {
            let file = try replica.openContentForWriting(of: number)
            defer { try? file.close() }
            guard try file.copy(from: source, at: 0, to: 0, count: size) == size else { throw Errno.ioError }
        } catch {
            _ = try? act(on: parent) { changes in try changes.finishFile(number) }
            throw FileProviderError.posix(error as? Errno ?? .ioError, "'\(path)' cannot be copied: \(error)")
        }
        return try act(on: parent) { changes in try changes.finishFile(number) }
    }

    /// Gives an item another name.
    ///
    /// - Throws: as ``createDirectory(withName:inParentItemIdentifier:)``.
    package func renameItem(
        withIdentifier identifier: ItemIdentifier, toName name: String
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier, name: name) { changes in try changes.move(identifier, to: nil, named: name) }
    }

    /// Moves an item into another directory, under another name when one is given.
    ///
    /// - Throws: as ``createDirectory(withName:inParentItemIdentifier:)``; `posix` with EINVAL for a directory that would
    ///   come to lie below itself.
    package func reparentItem(
        withIdentifier identifier: ItemIdentifier, toParentItemWithIdentifier parent: ItemIdentifier,
        newName: String? = nil
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier, name: newName) { changes in
            try changes.move(identifier, to: parent, named: newName)
        }
    }

    /// - Throws: `noSuchItem`, `posix`.
    package func setFavoriteRank(
        _ rank: Int64?, forItemIdentifier identifier: ItemIdentifier
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier) { changes in try changes.setFavoriteRank(rank, of: identifier) }
    }

    /// - Throws: `noSuchItem`, `posix`.
    package func setLastUsedDate(
        _ date: FileTimestamp, forItemIdentifier identifier: ItemIdentifier
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier) { changes in try changes.setLastUsedDate(date, of: identifier) }
    }

    /// - Throws: `noSuchItem`, `posix`.
    package func setTagData(
        _ data: [UInt8]?, forItemIdentifier identifier: ItemIdentifier
    ) throws(FileProviderError) -> FileProviderItem {
        try act(on: identifier) { changes in try changes.setTagData(data, of: identifier) }
    }

    /// An item as it is here.
    ///
    /// - Throws: `noSuchItem`; what the database says as `posix`.
    package func item(for identifier: ItemIdentifier) throws(FileProviderError) -> FileProviderItem {
        do {
            if let item = try replica.database.describe(identifier) { return item }
        } catch {
            throw FileProviderError.posix(.ioError, "the replica cannot be read: \(error)")
        }
        throw FileProviderError(.noSuchItem, itemIdentifier: identifier)
    }

    // MARK: - Private

    private var caller: LocalCaller { LocalCaller(user: Machine.userIdentifier, group: Machine.groupIdentifier) }

    func act<Value>(
        on identifier: ItemIdentifier, name: String? = nil, _ body: (inout LocalChanges) throws -> Value
    ) throws(FileProviderError) -> Value {
        guard !volume.isReadOnly else { throw FileProviderError.posix(.readOnlyFileSystem) }
        do {
            let (value, effects) = try replica.change(open: volume.openInodes, body)
            volume.noteChange(effects)
            return value
        } catch let obstacle as LocalObstacle {
            throw failure(obstacle, on: identifier, name: name)
        } catch {
            throw FileProviderError.posix(.ioError, "the replica cannot be changed: \(error)")
        }
    }

    private func failure(_ obstacle: LocalObstacle, on identifier: ItemIdentifier, name: String?) -> FileProviderError {
        switch obstacle {
        case .refused(.noSuchFileOrDirectory), .refused(.staleNFSFileHandle):
            return FileProviderError(.noSuchItem, itemIdentifier: identifier)
        case .refused(.fileExists):
            let parent = (try? replica.database.known(identifier))?.inode.number
            let holder = parent.flatMap { parent in
                name.flatMap { name in try? replica.database.item(named: name, in: parent) }
            }
            let item = holder.flatMap { try? replica.database.describe($0.identifier ?? $0.placeholder) }
            return item.map(FileProviderError.filenameCollision)
                ?? FileProviderError(.filenameCollision, itemIdentifier: identifier)
        case .refused(let error):
            return FileProviderError(.posix, error.description, itemIdentifier: identifier, errno: error)
        case .listing(let number), .content(let number):
            return FileProviderError(
                .ubiquitousFileUnavailable, itemIdentifier: identifier, underlyingErrors: [MissingInode(number: number)]
            )
        }
    }
}

/// What has to be listed before something can be done.
private struct MissingInode: Error {
    var number: InodeNumber
}

extension FileProviderError {
    fileprivate var missing: InodeNumber? { (underlyingErrors.first as? MissingInode)?.number }
}
