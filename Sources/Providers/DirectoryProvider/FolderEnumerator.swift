import FileNames
import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// Lists one directory page by page while it reads it, so that memory does not grow with the directory. The token of
/// a page is the number of names before it. For a file, it returns the file and its changes.
///
/// The watch is set before the first name is read, so that a change during the listing is reported as a change.
final class FolderEnumerator: FileProviderEnumerator {
    /// The position of a listing.
    private struct Progress {
        var stream: DirectoryStream
        /// The number of names read.
        var count = 0
        /// The first name of the next page.
        var following: [UInt8]?

        var token: FileProviderPage { FileProviderPage(rawValue: Array(String(count).utf8)) }

        mutating func next() throws(Errno) -> [UInt8]? {
            if let following {
                self.following = nil
                return following
            }
            guard let name = try stream.next() else { return nil }
            count += 1
            return name
        }
    }

    private let container: ItemIdentifier
    private let folder: Folder
    private let watcher: FolderWatcher?
    private let progress = Mutex<Progress?>(nil)

    init(container: ItemIdentifier, folder: Folder, watcher: FolderWatcher?) {
        self.container = container
        self.folder = folder
        self.watcher = watcher
    }

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        try await folder.reading(container) { [self] folder, cancellation in
            let place = try folder.find(container)
            if place.status.kind != .directory {
                guard page == .initial, let file = folder.item(at: place) else {
                    throw FileProviderError.noSuchItem(container)
                }
                return ItemPage(items: [file])
            }
            let directory = try folder.open(place)
            defer { try? directory.close() }
            if page == .initial { try folder.waitForAnswers(in: container, cancellation) }
            return try list(directory, startingAt: page, size: max(1, suggestedPageSize), cancellation)
        }
    }

    private func list(
        _ directory: FileDescriptor, startingAt page: FileProviderPage, size: Int,
        _ cancellation: BlockingCalls.Cancellation
    ) throws -> ItemPage {
        var progress = try begin(directory, at: page)
        var names: [[UInt8]] = []
        while names.count < size, let name = try progress.next() { names.append(name) }
        // Small directories are sorted by name.
        names.sort { $0.lexicographicallyPrecedes($1) }
        let shown = names.filter { bytes in
            folder.isShown(bytes, in: directory) && !(container == .rootContainer && Folder.isTrashName(bytes))
        }.map { FileNameText.text(of: $0) }
        let known = folder.manager.identifiers(ofChildrenNamed: shown, in: container)
        var items: [FileProviderItem] = []
        for (index, name) in shown.enumerated() {
            try cancellation.check()
            let item = try folder.item(named: name, in: directory, parent: container) { known[index] }
            if let item { items.append(item) }
        }
        progress.following = try progress.next()
        guard progress.following != nil else {
            return ItemPage(items: items + folder.missingMounts(in: directory, container))
        }
        let reached = progress
        self.progress.withLock { $0 = reached }
        return ItemPage(items: items, nextPage: reached.token)
    }

    /// Takes the stream for a page. It is returned with the next page, so a failed page ends the listing.
    ///
    /// - Throws: `pageExpired` for a page that is not the next one.
    private func begin(_ directory: FileDescriptor, at page: FileProviderPage) throws -> Progress {
        let reached = progress.withLock { $0.take() }
        if page == .initial {
            watcher?.watch(listed: directory, as: container)
            if container == .rootContainer { watcher?.findTrash(of: folder) }
            return Progress(stream: try DirectoryStream(of: directory))
        }
        guard let reached, reached.token == page else { throw FileProviderError(.pageExpired) }
        return reached
    }

    // MARK: - Files

    func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch {
        guard let document = try await folder.reading(container, { [self] _, _ in try document() }) else {
            throw FileProviderError(.featureUnsupported)
        }
        let present = Self.anchor(of: document)
        return ChangeBatch(updated: present == anchor ? [] : [document], anchor: present)
    }

    /// The path and version of the file, so that no state is needed; nil for a directory.
    func currentSyncAnchor() async throws -> SyncAnchor? {
        try await folder.reading(container) { [self] _, _ in try document().map(Self.anchor) }
    }

    /// The current state of the file; nil for a directory.
    ///
    /// - Throws: `noSuchItem` if the container does not exist; POSIX errors.
    private func document() throws -> FileProviderItem? {
        let place = try folder.find(container)
        guard place.status.kind != .directory else { return nil }
        guard let item = folder.item(at: place) else { throw FileProviderError.noSuchItem(container) }
        return item
    }

    private static func anchor(of document: FileProviderItem) -> SyncAnchor {
        let version = document.itemVersion.contentVersion + [0x2F] + document.itemVersion.metadataVersion
        return SyncAnchor(
            rawValue: version + [0x2F] + Array((document.parentItemIdentifier.rawValue + "/" + document.filename).utf8))
    }
}
