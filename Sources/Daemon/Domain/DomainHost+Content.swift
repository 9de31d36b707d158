import FileProvider
import Replica
import Sync
import SystemPackage
import Volume

/// Eviction and download of items, with Apple's names.
extension DomainHost: ManagedDomain {
    /// Evicts an item: a file loses its local content, a directory that of all descendants and then its listing.
    /// Returns when this is done, or when the first item refuses; items evicted before that stay evicted.
    ///
    /// - Throws: `noSuchItem`; `unsyncedEdits` for pending changes; `nonEvictable` if the item is kept downloaded;
    ///   `posix` with EBUSY for an open item and with EMLINK for a file with several hard links;
    ///   `nonEvictableChildren` for a directory, with the errors of its descendants as underlying errors.
    package func evictItem(identifier: ItemIdentifier) async throws(FileProviderError) {
        let item = try record(identifier)
        let report: EvictionReport
        do {
            report = try await engine.evict(item.inode.number, isStrict: true)
        } catch {
            throw Self.failure(from: error, on: identifier)
        }
        guard let first = report.refusals.first else { return }
        if first.number == item.inode.number, first.refusal != .nonEvictableChildren {
            throw first.refusal.error(for: identifier)
        }
        let children = report.refusals.filter { $0.number != item.inode.number }.map { number, refusal in
            let child = try? replica.database.item(ofInode: number)
            return refusal.error(for: child?.localIdentifier)
        }
        throw FileProviderError(.nonEvictableChildren, itemIdentifier: identifier, underlyingErrors: children)
    }

    /// Fetches a file, a range of it, or the listing of a directory.
    ///
    /// - Throws: `noSuchItem`; the provider's errors.
    package func requestDownloadForItem(
        withIdentifier identifier: ItemIdentifier, requestedRange range: Range<Int64>? = nil
    ) async throws(FileProviderError) {
        let inode = try record(identifier).inode
        let request = FileProviderRequest(reason: .download)
        switch inode.kind {
        case .directory: try await engine.list(inode.number, request: request)
        case .file:
            guard let range else { return try await engine.materialize(inode.number, request: request) }
            try await engine.provide(
                inode.number, version: inode.contentVersion, range: range.clamped(to: 0..<inode.size),
                request: request)
        case .symbolicLink, .fifo, .characterDevice, .blockDevice, .socket: return
        }
    }

    /// Queues an upload of fields of an item, changed or not. Returns when the request is stored.
    ///
    /// - Throws: `noSuchItem`; `ubiquitousFileUnavailable` for the contents of a dataless item or of a directory.
    package func requestModification(
        of fields: ItemFields, forItemWithIdentifier identifier: ItemIdentifier
    ) throws(FileProviderError) {
        guard !volume.isReadOnly else { throw FileProviderError.posix(.readOnlyFileSystem) }
        let inode = try record(identifier).inode
        if fields.contains(.contents), inode.kind != .file || inode.content != .materialized {
            throw FileProviderError(.ubiquitousFileUnavailable, itemIdentifier: identifier)
        }
        do {
            let (_, effects) = try replica.change(open: volume.openInodes) { changes in
                try changes.items.send(fields, of: inode.number)
            }
            volume.noteChange(effects)
        } catch {
            throw Self.failure(from: error, on: identifier)
        }
    }

    /// An item that has a representation on disk.
    private func record(_ identifier: ItemIdentifier) throws(FileProviderError) -> ItemRecord {
        do {
            if let item = try replica.database.known(identifier), try !replica.database.isOnlyRemembered(item) {
                return item
            }
        } catch {
            throw Self.failure(from: error, on: identifier)
        }
        throw FileProviderError(.noSuchItem, itemIdentifier: identifier)
    }

    private static func failure(from error: any Error, on identifier: ItemIdentifier) -> FileProviderError {
        if let error = error as? FileProviderError { return error }
        if error is CancellationError { return FileProviderError(.userCancelled, itemIdentifier: identifier) }
        return FileProviderError(.posix, "\(error)", itemIdentifier: identifier, errno: error as? Errno ?? .ioError)
    }
}

extension EvictionRefusal {
    /// The refusal as an error of the API.
    func error(for identifier: ItemIdentifier?) -> FileProviderError {
        switch self {
        case .unsyncedEdits: FileProviderError(.unsyncedEdits, itemIdentifier: identifier)
        case .existsOnlyHere, .isExcluded:
            FileProviderError(.unsyncedEdits, words, itemIdentifier: identifier)
        case .nonEvictable: FileProviderError(.nonEvictable, itemIdentifier: identifier)
        case .nonEvictableChildren: FileProviderError(.nonEvictableChildren, itemIdentifier: identifier)
        case .noSuchItem: FileProviderError(.noSuchItem, itemIdentifier: identifier)
        case .isOpen, .isHardLinked, .isDownloading, .isBeingListed, .isInUse, .removalsAreHeld, .failed:
            FileProviderError(.posix, words, itemIdentifier: identifier, errno: errno)
        }
    }
}
