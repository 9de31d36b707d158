import FileProvider
import GRDB
import Synchronization
import SystemPackage

/// A file's content that is being filled: what a transfer needs to know.
package struct ContentBeginning: Sendable {
    package var identifier: ItemIdentifier
    /// Open for reading and writing; the transfer's to close.
    package fileprivate(set) var descriptor = FileDescriptor(rawValue: -1)
    package var generation: Int64
    package var version: [UInt8]
    package var size: Int64
    package var present: ByteRanges
    /// Whether nothing of the content was here.
    fileprivate var isNew: Bool
    /// Whether the row had no content file, either.
    fileprivate var isFirst: Bool
}

/// The bytes of files: begun, recorded once they are on disk, read, dropped.
extension Replica {
    /// Makes a file ready to be filled with the content of the version that it shows, going on with what is here.
    ///
    /// - Throws: `noSuchItem` for what is not a file of the remote's; `versionNoLongerAvailable` when the file shows
    ///   another version than `version`; POSIX errors of the content file.
    package func beginContent(of number: InodeNumber, version: [UInt8]?) async throws -> ContentBeginning {
        let opened = Mutex<FileDescriptor?>(nil)
        do {
            return try await database.write { [contents] db in
                var beginning = try Self.beginContent(of: number, version: version, in: db)
                // In the transaction, because an eviction after it removes the file.
                beginning.descriptor = try opened.withLock { opened in
                    try? opened?.close()
                    opened = nil
                    let descriptor =
                        try beginning.isNew
                        ? contents.create(number, size: beginning.size, isFirst: beginning.isFirst)
                        : contents.open(number, .readWrite)
                    opened = descriptor
                    return descriptor
                }
                return beginning
            }
        } catch {
            opened.withLock { try? $0?.close() }
            guard let error = error as? Errno else { throw error }
            throw FileProviderError.posix(error, "the content file of inode \(number): \(error)")
        }
    }

    /// As ``beginContent(of:version:)``, without the content file.
    private static func beginContent(
        of number: InodeNumber, version: [UInt8]?, in db: Database
    ) throws -> ContentBeginning {
        let item = try db.item(ofInode: number)
        // One that was removed or replaced here while it was open is on the remote still. Of one that the remote has
        // replaced the provider says itself that it has another version.
        let source = try item.map(\.identifier) ?? db.source(ofNameless: number)
        guard let source, let inode = try item?.inode ?? db.inode(number), inode.kind == .file else {
            throw FileProviderError(.noSuchItem, "inode \(number) is no file of the remote's")
        }
        if let version, version != inode.contentVersion {
            throw FileProviderError(.versionNoLongerAvailable, itemIdentifier: source)
        }
        let hadFile = try db.hasContentFile(number)
        var begun = inode
        var present = ByteRanges()
        switch inode.content {
        case .materialized: present.insert(0..<inode.size)
        case .partial: present = try db.presentRanges(of: number)
        case .dataless:
            try db.beginContent(of: number)
            guard let changed = try db.inode(number) else { throw FileProviderError(.noSuchItem) }
            begun = changed
        }
        return ContentBeginning(
            identifier: source, generation: begun.contentGeneration, version: begun.contentVersion, size: begun.size,
            present: present, isNew: inode.content == .dataless, isFirst: !hadFile)
    }

    /// Records that ranges are on disk. All of a file's bytes make it materialized.
    ///
    /// - Parameter cause: which process they were fetched for, in words; nil for none, and then it was no use of them.
    /// - Returns: what is left to tell the kernel; nil when the content has been begun anew since, and nothing was
    ///   recorded.
    package func recordContent(
        of number: InodeNumber, generation: Int64, ranges: ByteRanges, cause: String? = nil
    ) async throws -> ReplicaEffects? {
        try await database.write { [contents] db in
            guard let inode = try db.inode(number), inode.contentGeneration == generation, inode.content == .partial
            else { return nil }
            var effects = ReplicaEffects()
            let isComplete = ranges.contains(0..<inode.size)
            try db.recordContent(
                of: number, ranges: ranges, isComplete: isComplete,
                hasUnusualAllocation: isComplete && (try? contents.status(of: number))?.hasUnusualAllocation ?? false,
                cause: cause, at: FileTimestamp.now)
            try db.forgetReadingFailure(of: number)
            effects.invalidations.append(.attributes(number))
            return effects
        }
    }

    /// Makes a file dataless again whose content was begun and never came.
    ///
    /// - Returns: false when a process has it open, which may read from its content file already: that file stays, and the
    ///   next download goes on with it.
    package func abandonContent(
        of number: InodeNumber, generation: Int64, open: any OpenInodes
    ) async throws -> Bool {
        let (isAbandoned, _) = try await ingest(open: open, changingNames: false) { ingestion in
            try ingestion.versions.abandon(number, generation: generation)
        }
        return isAbandoned || !open.isOpen(number)
    }

    /// A descriptor to read a file's local content from; the caller's to close. Blocks no longer than the disk does.
    ///
    /// - Throws: `Errno`; ENOENT when the content was dropped meanwhile.
    package func openContent(of number: InodeNumber) throws -> FileDescriptor {
        try contents.open(number, .readOnly)
    }
}
