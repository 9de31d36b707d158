import FileProvider
import Foundation
import Synchronization
import SystemPackage

/// A manager for tests of a provider without a system. It knows the items that the `learn` functions have recorded.
public final class TestManager: FileProviderManager {
    private struct State {
        var items: [ItemIdentifier: FileProviderItem] = [:]
        var versionsToBeDeleted: Set<[UInt8]> = []
        var materialized: Set<ItemIdentifier> = []
        var signals = 0
        var resolved: [FileProviderError.Code] = []
        var warnings: [String] = []
        var childLookups = 0
    }

    public let domain: FileProviderDomain
    public let stateDirectory: FilePath
    public let store: any ProviderStore
    private let state = Mutex(State())
    /// The stores of the process, by state directory: a provider that is made again finds what it stored before.
    private static let stores = Mutex<[FilePath: InMemoryProviderStore]>([:])

    /// A manager that knows no items.
    ///
    /// - Parameters:
    ///   - domain: the provider's domain.
    ///   - stateDirectory: an existing directory.
    ///   - store: nil for a store in memory, shared by all managers of that directory.
    public init(domain: FileProviderDomain, stateDirectory: FilePath, store: (any ProviderStore)? = nil) {
        self.domain = domain
        self.stateDirectory = stateDirectory
        self.store = store ?? Self.store(for: stateDirectory)
    }

    /// The store in memory that all managers of a state directory share; of one that does not exist, a new store.
    public static func store(for stateDirectory: FilePath) -> InMemoryProviderStore {
        guard FileManager.default.fileExists(atPath: stateDirectory.string) else { return InMemoryProviderStore() }
        return stores.withLock { stores in
            let store = stores[stateDirectory] ?? InMemoryProviderStore()
            stores[stateDirectory] = store
            return store
        }
    }

    // MARK: - Recording

    /// Records items of the remote.
    public func learn(_ items: [FileProviderItem]) {
        state.withLock { state in
            for item in items { state.items[item.itemIdentifier] = item }
        }
    }

    /// Records the complete listing of a directory.
    public func learn(listingOf directory: ItemIdentifier, _ items: [FileProviderItem]) {
        learn(items)
        state.withLock { state in
            let present = Set(items.map(\.itemIdentifier))
            let gone = state.items.filter { $0.value.parentItemIdentifier == directory && !present.contains($0.key) }
            for identifier in gone.keys { state.items[identifier] = nil }
            state.materialized.insert(directory)
        }
    }

    /// Records a batch of changes.
    public func learn(_ batch: ChangeBatch) {
        learn(batch.updated)
        state.withLock { state in
            for identifier in batch.deleted { state.items[identifier] = nil }
        }
    }

    /// Removes an item that was deleted or has a new identifier.
    public func forget(_ identifier: ItemIdentifier) {
        state.withLock { $0.items[identifier] = nil }
    }

    /// Records that an item was deleted here, and that the provider has not been asked to delete it yet.
    public func noteDeletedHere(_ identifier: ItemIdentifier) {
        state.withLock { state in
            guard let item = state.items.removeValue(forKey: identifier) else { return }
            state.versionsToBeDeleted.insert(item.itemVersion.contentVersion)
        }
    }

    // MARK: - Inspection

    /// The number of calls of ``signalEnumerator()``.
    public var signals: Int { state.withLock { $0.signals } }

    /// The codes that the provider has signalled as resolved.
    public var resolvedErrors: [FileProviderError.Code] { state.withLock { $0.resolved } }

    /// The warnings of the provider.
    public var warnings: [String] { state.withLock { $0.warnings } }

    /// The number of calls of ``identifier(ofChildNamed:in:)``.
    package var childLookups: Int { state.withLock { $0.childLookups } }

    // MARK: - The calls of a provider

    public func signalEnumerator() {
        state.withLock { $0.signals += 1 }
    }

    public func signalErrorResolved(_ code: FileProviderError.Code) {
        state.withLock { $0.resolved.append(code) }
    }

    public func remotePath(of identifier: ItemIdentifier) -> [String]? { path(of: identifier, from: .rootContainer) }

    public func remoteTrashPath(of identifier: ItemIdentifier) -> [String]? {
        path(of: identifier, from: .trashContainer)
    }

    private func path(of identifier: ItemIdentifier, from top: ItemIdentifier) -> [String]? {
        state.withLock { state in
            var names: [String] = []
            var current = identifier
            while current != top {
                guard let item = state.items[current], names.count < 4096 else { return nil }
                names.append(item.filename)
                current = item.parentItemIdentifier
            }
            return names.reversed()
        }
    }

    public func identifier(ofChildNamed name: String, in directory: ItemIdentifier) -> ItemIdentifier? {
        state.withLock { state in
            state.childLookups += 1
            return state.items.values.first {
                $0.parentItemIdentifier == directory && $0.itemIdentifier != .rootContainer
                    && $0.filename.utf8.elementsEqual(name.utf8)
            }?.itemIdentifier
        }
    }

    public func identifiers(ofChildrenNamed names: [String], in directory: ItemIdentifier) -> [ItemIdentifier?] {
        let children = Dictionary(
            knownItems(in: directory).map { (Array($0.filename.utf8), $0.itemIdentifier) },
            uniquingKeysWith: { first, _ in first })
        return names.map { children[Array($0.utf8)] }
    }

    public func knownItems(in directory: ItemIdentifier) -> [KnownItem] {
        known { $0.parentItemIdentifier == directory && $0.itemIdentifier != .rootContainer }
    }

    public func knownItems(withContentVersions versions: [[UInt8]]) -> [KnownItem] {
        let wanted = Set(versions)
        return known { wanted.contains($0.itemVersion.contentVersion) }
    }

    public func contentVersionsToBeDeleted(among versions: [[UInt8]]) -> Set<[UInt8]> {
        state.withLock { $0.versionsToBeDeleted.intersection(versions) }
    }

    public func knownIdentifiers(among identifiers: [ItemIdentifier]) -> Set<ItemIdentifier> {
        state.withLock { state in Set(identifiers.filter { state.items[$0] != nil }) }
    }

    public func knownVersion(of identifier: ItemIdentifier) -> ItemVersion? {
        state.withLock { $0.items[identifier]?.itemVersion }
    }

    private func known(_ isIncluded: (FileProviderItem) -> Bool) -> [KnownItem] {
        state.withLock { state in
            state.items.values.filter(isIncluded).map { item in
                KnownItem(
                    itemIdentifier: item.itemIdentifier, parentItemIdentifier: item.parentItemIdentifier,
                    filename: item.filename, contentVersion: item.itemVersion.contentVersion,
                    documentSize: item.documentSize ?? 0)
            }
        }
    }

    public func materializedDirectories() -> [ItemIdentifier] {
        state.withLock { Array($0.materialized) }
    }

    public func report(_ warning: String) {
        state.withLock { $0.warnings.append(warning) }
    }
}
