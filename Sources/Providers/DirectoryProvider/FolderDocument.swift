import FileProvider
import Syscalls
import SystemPackage

/// The enumerator of a directory, which lists its items, or of a file, which returns the file and its changes.
struct FolderContainer: FileProviderEnumerator {
    let identifier: ItemIdentifier
    let listing: FolderEnumerator
    let folder: Folder
    let calls: BlockingCalls

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        do {
            return try await listing.enumerateItems(startingAt: page, suggestedPageSize: suggestedPageSize)
        } catch let error as FileProviderError where error.code == .noSuchItem && page == .initial {
            guard let document = try await document() else { throw error }
            return ItemPage(items: [document])
        }
    }

    func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch {
        guard let document = try await document() else { throw FileProviderError(.featureUnsupported) }
        let present = Self.anchor(of: document)
        return ChangeBatch(updated: present == anchor ? [] : [document], anchor: present)
    }

    /// The path and version of the file, so that no state is needed; nil for a directory.
    func currentSyncAnchor() async throws -> SyncAnchor? {
        try await document().map(Self.anchor)
    }

    func invalidate() {
        listing.invalidate()
    }

    /// The current state of the file; nil for a directory.
    ///
    /// - Throws: `noSuchItem` if the file does not exist.
    private func document() async throws -> FileProviderItem? {
        try await calls.run { [folder, identifier] _ in
            do {
                let place = try folder.find(identifier)
                guard place.status.kind != .directory else { return nil }
                guard let item = folder.item(at: place) else { throw FileProviderError.noSuchItem(identifier) }
                return item
            } catch let error as Errno {
                throw folder.failure(error, of: identifier)
            }
        }
    }

    private static func anchor(of document: FileProviderItem) -> SyncAnchor {
        let version = document.itemVersion.contentVersion + [0x2F] + document.itemVersion.metadataVersion
        return SyncAnchor(
            rawValue: version + [0x2F] + Array((document.parentItemIdentifier.rawValue + "/" + document.filename).utf8))
    }
}
