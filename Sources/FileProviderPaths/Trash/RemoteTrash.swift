import FileProvider
import Synchronization

/// The remote's trash: listing it, finding items in it, reading them, and deleting them for good.
final class RemoteTrash: Sendable {
    private struct Listing {
        var entries: [TrashedEntry]
        /// The root's tag and the records' time before the listing was requested.
        var root: [UInt8]
        var moment: Int
        var requestedAt: ContinuousClock.Instant
    }

    let remote: any TrashingRemote
    let records: TrashRecords
    private let tree: PathTree
    private let listing = SharedRequest<[TrashedEntry]>()
    private let last = Mutex<Listing?>(nil)
    /// For how long a listing is given again where nothing has come into the trash or left it.
    private static let trust = Duration.seconds(60)
    private static let mostKept = 4096

    init(_ remote: any TrashingRemote, tree: PathTree) {
        self.remote = remote
        self.tree = tree
        records = TrashRecords(in: ReportingStore(of: tree.manager))
    }

    static var none: FileProviderError { FileProviderError(.featureUnsupported, "this remote has no trash") }

    var isOn: Bool { remote.traits.hasTrash }

    // MARK: - Listing

    /// The trashed entries, as they were before as far as that is known, without what was deleted here. The listing is
    /// requested after the call.
    func entries() async throws -> [TrashedEntry] {
        try await listing { [remote, records] in
            let moment = records.now
            return records.settle(try await remote.trashedEntries(), since: moment)
        }
    }

    /// As ``entries()``, for a caller that asks again and again: where versions of directories cover what is below, nothing
    /// comes into the trash or out of it without another version of the root. What was deleted in it for good is noticed a
    /// little later.
    private func recentEntries() async throws -> [TrashedEntry] {
        guard remote.traits.directoryTagsCoverTrees else { return try await entries() }
        let (moment, now) = (records.now, ContinuousClock.now)
        let root = try await remote.entry(at: .root).tag
        if let last = last.withLock({ $0 }), last.root == root, last.moment == moment,
            now - last.requestedAt < Self.trust
        {
            return last.entries
        }
        let found = try await entries()
        let isKept = found.count <= Self.mostKept
        last.withLock {
            $0 = isKept ? Listing(entries: found, root: root, moment: moment, requestedAt: now) : nil
        }
        return found
    }

    func items(in container: ItemIdentifier, mayBeOlder: Bool) async throws -> [FileProviderItem] {
        guard isOn else { throw Self.none }
        if container == .trashContainer {
            let all = try await mayBeOlder ? recentEntries() : entries()
            return shown(all).map { item($0, in: .trashContainer) }
        }
        guard let directory = try await find(container)?.entry, directory.entry.kind == .directory else {
            throw FileProviderError.noSuchItem(container)
        }
        return try await naming(container) {
            shown(try await remote.trashedEntries(in: directory)).map { item($0, in: container) }
        }
    }

    /// The entries that can be shown; others are reported. Hidden names are not shown.
    private func shown(_ entries: [TrashedEntry]) -> [TrashedEntry] {
        var identifiers: Set<ItemIdentifier> = []
        return entries.filter { found in
            guard let identifier = found.identifier, !HiddenName.isOne(found.entry.name) else { return false }
            if let defect = FileProviderItem.defect(ofUTF8Filename: found.entry.name) {
                tree.manager.report("the remote's trash has a name that is not shown: \(defect)")
                return false
            }
            guard identifiers.insert(identifier).inserted else {
                tree.manager.report("the remote's trash lists '\(found.entry.name)' twice")
                return false
            }
            return true
        }
    }

    func item(_ found: TrashedEntry, in parent: ItemIdentifier) -> FileProviderItem {
        var item = tree.items.item(found.entry, as: found.identifier ?? parent, in: parent)
        if parent == .trashContainer { item.trashDate = found.trashedAt }
        return item
    }

    /// Names the item where the remote says that there is none.
    private func naming<Value: Sendable>(
        _ identifier: ItemIdentifier, _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let error as FileProviderError where error.code == .noSuchItem {
            throw FileProviderError.noSuchItem(identifier)
        }
    }

    // MARK: - Finding

    /// An item that is in the trash, or below a directory there, and its parent; nil when it is not.
    func find(_ identifier: ItemIdentifier) async throws -> (entry: TrashedEntry, parent: ItemIdentifier)? {
        guard isOn, MintedIdentifier.isRemote(identifier) else { return nil }
        do {
            return try await look(for: identifier)
        } catch let error as FileProviderError where error.code == .featureUnsupported {
            // The trash was turned off just now.
            return nil
        }
    }

    private func look(
        for identifier: ItemIdentifier
    ) async throws -> (entry: TrashedEntry, parent: ItemIdentifier)? {
        if let known = records.known(identifier), let now = try await remote.trashedEntry(known, below: []),
            now.identifier == identifier
        {
            return (records.complete(now), .trashContainer)
        }
        let all = try await entries()
        if let found = all.first(where: { $0.identifier == identifier }) { return (found, .trashContainer) }
        guard let names = tree.manager.remoteTrashPath(of: identifier), names.count > 1 else { return nil }
        // Several directories in the trash may have the same name.
        for top in all where top.entry.kind == .directory && top.entry.name.utf8.elementsEqual(names[0].utf8) {
            guard var parent = top.identifier,
                let found = try await remote.trashedEntry(top, below: Array(names.dropFirst())),
                found.identifier == identifier
            else { continue }
            for name in names.dropFirst().dropLast() {
                guard let next = tree.manager.identifier(ofChildNamed: name, in: parent) else {
                    throw FileProviderError.noSuchItem(identifier)
                }
                parent = next
            }
            return (found, parent)
        }
        return nil
    }

    // MARK: - Reading and deleting

    func fetch(
        _ found: TrashedEntry, in parent: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        let item = item(found, in: parent)
        if let version, item.itemVersion.contentVersion != version {
            throw FileProviderError(.versionNoLongerAvailable, item: item)
        }
        try await naming(item.itemIdentifier) { try await remote.readTrashed(found, range: range, into: sink) }
        return item
    }

    /// Whether a file in the trash contains just these bytes; no source is an empty file.
    func has(_ found: TrashedEntry, contentOf source: ContentSource?) async throws -> Bool {
        guard found.entry.size == source?.size ?? 0 else { return false }
        guard let source else { return true }
        return try await source.equals { try await remote.readTrashed(found, range: nil, into: $0) }
    }

    /// Deletes from the trash for good. An item that another client has restored meanwhile stays.
    func delete(_ identifier: ItemIdentifier, base: ItemVersion, _ options: DeleteItemOptions) async throws {
        guard let (found, parent) = try await find(identifier) else { return }
        let item = item(found, in: parent)
        switch found.entry.kind {
        case .file:
            guard
                parent != .trashContainer || PathItems.hasTag(of: item.itemVersion.contentVersion, base.contentVersion)
            else { throw FileProviderError.deletionRejected(of: item) }
        case .directory:
            if !options.contains(.recursive) {
                let below = try await ifExists { try await remote.trashedEntries(in: found) }
                guard let below else { return }
                guard below.isEmpty else { throw FileProviderError(.directoryNotEmpty, item: item) }
            }
        case .symbolicLink: break
        }
        try await remote.deleteTrashed(found)
        if let key = found.entry.stableIdentifier { records.forget(key) }
    }
}

extension TrashedEntry {
    var identifier: ItemIdentifier? { entry.remoteIdentifier }
}
