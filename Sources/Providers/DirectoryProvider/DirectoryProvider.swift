import FileProvider
import Syscalls
import SystemPackage

/// A local or network-mounted folder as the remote: the embedded default.
package final class DirectoryProvider: FileProviderReplicatedExtension {
    package let features: ProviderFeatures
    let folder: Folder
    let watcher: FolderWatcher?
    private static let chunk: Int64 = 1 << 20

    /// - Parameters:
    ///   - root: the folder, which must exist when it is used for the first time.
    ///   - leftoverAge: the age in seconds after which a file of an interrupted change is removed; a copy that another domain of the same
    ///     folder may need, after thirty times as long.
    /// - Throws: `serverUnreachable` with the reason.
    package init(root: FilePath, manager: any FileProviderManager, leftoverAge: Int64 = 86_400) throws {
        folder = try Folder(path: root, manager: manager, leftoverAge: leftoverAge)
        // inotify does not report changes by other machines on a network mount, so it is compared.
        watcher = folder.isOnNetwork ? nil : try? FolderWatcher(folder: folder)
        var features = ProviderFeatures(
            partialContentFetching: true, changeFeed: watcher != nil, writing: !folder.isReadOnly,
            trash: !folder.isReadOnly,
            conditionalWrites: !folder.isReadOnly, documentEnumeration: true, datesMakeVersions: true, byteNames: true,
            concurrentCalls: 16)
        // A network file system may change the times of a file after it was written.
        features.contentVersionsMayRepeat = !folder.isOnNetwork
        self.features = features
    }

    package func invalidate() async {
        watcher?.stop()
    }

    package func item(
        for identifier: ItemIdentifier, request: FileProviderRequest
    ) async throws -> FileProviderItem {
        try await folder.reading(identifier) { folder, _ in
            guard let item = folder.item(at: try folder.find(identifier)) else {
                throw FileProviderError.noSuchItem(identifier)
            }
            return item
        }
    }

    package func quota() async throws -> RemoteQuota? {
        try await folder.reading(.rootContainer) { folder, _ in
            let root = try folder.openRoot()
            defer { try? root.close() }
            let room = try root.fileSystemStatistics()
            let bytes = { (blocks: UInt64) in Int64(clamping: blocks.multipliedReportingOverflow(by: room.blockSize).0)
            }
            // Space reserved for root is not available.
            let used = room.blocks - min(room.blocks, room.freeBlocks)
            return RemoteQuota(
                free: bytes(room.availableBlocks), total: bytes(used + room.availableBlocks))
        }
    }

    package func enumerator(
        for container: ItemIdentifier, request: FileProviderRequest
    ) throws -> any FileProviderEnumerator {
        switch container {
        case .workingSet:
            guard watcher != nil else { throw FileProviderError(.featureUnsupported) }
            return FolderChanges(folder: folder, watcher: watcher)
        case .trashContainer:
            guard features.trash else { throw FileProviderError(.featureUnsupported, "a source that is not written") }
            return trashEnumerator()
        default:
            return FolderEnumerator(container: container, folder: folder, watcher: watcher)
        }
    }

    package func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        let (item, count) = try await folder.reading(identifier) { folder, cancellation in
            try Self.copy(identifier, version: version, range: range, from: folder, into: sink, cancellation)
        }
        // File systems copy at their own rate.
        try await sink.pace(count)
        return item
    }

    private static func copy(
        _ identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, from folder: Folder,
        into sink: any ContentSink, _ cancellation: BlockingCalls.Cancellation
    ) throws -> (FileProviderItem, count: Int64) {
        let place = try folder.find(identifier)
        guard let name = place.name, place.status.kind == .regular else {
            throw FileProviderError.noSuchItem(identifier)
        }
        let file = try place.directory.openFile(named: name)
        defer { try? file.close() }
        let before = try FileStatus.settled(of: file)
        guard before.inode == place.status.inode, before.device == place.status.device,
            let item = folder.items.item(
                identifier, named: name, in: place.directory, parent: place.parent, status: before)
        else { throw FileProviderError.noSuchItem(identifier) }
        let current = item.itemVersion.contentVersion
        guard version == nil || version == current else {
            throw FileProviderError(.versionNoLongerAvailable, item: item)
        }
        let wanted = (range ?? 0..<before.size).clamped(to: 0..<before.size)
        var offset = wanted.lowerBound
        var failure: (any Error)?
        while offset < wanted.upperBound, failure == nil {
            try cancellation.check()
            let count = min(chunk, wanted.upperBound - offset)
            do {
                try sink.write(from: file, at: offset, count: count)
            } catch {
                failure = error
            }
            offset += count
            // A file that was written during the fetch may have returned bytes of two versions. The change time cannot be set back.
            let after = try FileStatus(of: file)
            guard FolderItems.version(of: after).contentVersion == current, after.changed == before.changed else {
                throw FileProviderError(.versionNoLongerAvailable, item: item)
            }
            if failure == nil { sink.confirmVersion(of: wanted.lowerBound..<offset) }
        }
        if let failure { throw failure }
        return (item, offset - wanted.lowerBound)
    }
}
