import FileProvider
import Foundation
import Replica
import Sync
import SystemPackage
import Volume

/// What the system can be asked to do with the content of items, as calls with Apple's names.
extension DomainHost: ManagedDomain {
    /// Makes an item dataless: a file loses its local content, a directory that of all below it, and then its own
    /// listing. Returns when all is done, or when the first item refuses; what was evicted before that stays evicted.
    ///
    /// - Throws: `noSuchItem`; `unsyncedEdits` when a local change is not on the remote yet; `nonEvictable` when the item
    ///   is kept downloaded; `posix` with EBUSY when it is open, with EMLINK when it has several hard links;
    ///   `nonEvictableChildren` for a directory, with the errors of the children that refused as underlying errors.
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
            return refusal.error(for: child.map { $0.identifier ?? $0.placeholder })
        }
        throw FileProviderError(.nonEvictableChildren, itemIdentifier: identifier, underlyingErrors: children)
    }

    /// Brings a file's content here, or a range of it; of a directory its listing, one level deep.
    ///
    /// - Throws: `noSuchItem`, what the provider says.
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

    /// Has fields of an item sent to the provider, changed or not. Returns when that is queued.
    ///
    /// - Throws: `noSuchItem`; `ubiquitousFileUnavailable` for the contents of what is not here, or is no file.
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
                try changes.send(fields, of: inode.number)
            }
            volume.noteChange(effects)
        } catch {
            throw Self.failure(from: error, on: identifier)
        }
    }

    /// Says that the identifiers of an item and of all below it are not to be trusted any more. Returns when that is
    /// recorded: then everything is offered to the provider again, which ends with its `importDidFinish`.
    ///
    /// - Throws: `noSuchItem` for what has no representation here, or was not reimported yet after an earlier call;
    ///   `featureUnsupported` where the remote cannot be written.
    package func reimportItems(below identifier: ItemIdentifier) async throws(FileProviderError) {
        let item = try record(identifier)
        do {
            try await engine.reimport(below: item.inode.number)
        } catch {
            throw Self.failure(from: error, on: identifier)
        }
    }

    private func record(_ identifier: ItemIdentifier) throws(FileProviderError) -> ItemRecord {
        do {
            if let item = try replica.database.known(identifier) { return item }
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
    /// The refusal as callers of the API see it.
    func error(for identifier: ItemIdentifier?) -> FileProviderError {
        switch self {
        case .unsyncedEdits: FileProviderError(.unsyncedEdits, itemIdentifier: identifier)
        case .existsOnlyHere, .isExcluded:
            FileProviderError(.unsyncedEdits, words, itemIdentifier: identifier)
        case .nonEvictable: FileProviderError(.nonEvictable, itemIdentifier: identifier)
        case .nonEvictableChildren: FileProviderError(.nonEvictableChildren, itemIdentifier: identifier)
        case .noSuchItem: FileProviderError(.noSuchItem, itemIdentifier: identifier)
        case .isOpen, .isHardLinked, .isDownloading, .isBeingListed, .isInUse, .failed:
            FileProviderError(.posix, words, itemIdentifier: identifier, errno: errno)
        }
    }
}
