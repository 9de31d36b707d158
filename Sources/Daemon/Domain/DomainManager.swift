import FileProvider
import Logging
import Replica
import Sync
import Synchronization
import SystemPackage

/// A domain as its provider sees it.
final class DomainManager: FileProviderManager {
    let domain: FileProviderDomain
    let stateDirectory: FilePath
    private let replica: Replica
    private let logger: Logger
    private let state = Mutex(State())

    private struct State {
        /// Held by the domain. A strong reference would be a cycle (engine, provider, manager), which would keep the
        /// provider's descriptors open after the unmount.
        weak var engine: SyncEngine?
        /// Not kept by its provider.
        weak var host: DomainHost?
        /// What the provider said before there was an engine to say it to.
        var isSignalled = false
        var warnings: [String] = []
    }

    init(domain: FileProviderDomain, stateDirectory: FilePath, replica: Replica, logger: Logger) {
        self.domain = domain
        self.stateDirectory = stateDirectory
        self.replica = replica
        self.logger = logger
    }

    func attach(_ engine: SyncEngine) {
        let (isSignalled, warnings) = state.withLock { state in
            state.engine = engine
            return (state.isSignalled, state.warnings)
        }
        for warning in warnings { engine.warnings.report(warning) }
        if isSignalled { engine.signal() }
    }

    /// The domain is mounted: its items can be acted on.
    func attach(_ host: DomainHost) {
        state.withLock { $0.host = host }
    }

    var store: any ProviderStore { replica.providerStore }

    func signalEnumerator() {
        let engine = state.withLock { state in
            state.isSignalled = true
            return state.engine
        }
        engine?.signal()
    }

    func signalErrorResolved(_ code: FileProviderError.Code) {
        state.withLock { $0.engine }?.errorWasResolved()
    }

    func reimportItems(below identifier: ItemIdentifier) async throws {
        guard let item = try replica.database.known(identifier) else {
            throw FileProviderError(.noSuchItem, itemIdentifier: identifier)
        }
        guard let engine = state.withLock({ $0.engine }) else {
            // Whoever starts the engine finds it.
            return try await replica.beginReimport(below: item.inode.number)
        }
        try await engine.reimport(below: item.inode.number)
    }

    func evictItem(identifier: ItemIdentifier) async throws {
        try await mounted().evictItem(identifier: identifier)
    }

    func requestDownloadForItem(
        withIdentifier identifier: ItemIdentifier, requestedRange: Range<Int64>?
    ) async throws {
        try await mounted().requestDownloadForItem(withIdentifier: identifier, requestedRange: requestedRange)
    }

    func requestModification(
        of fields: ItemFields, forItemWithIdentifier identifier: ItemIdentifier
    ) async throws {
        try mounted().requestModification(of: fields, forItemWithIdentifier: identifier)
    }

    private func mounted() throws -> DomainHost {
        guard let host = state.withLock({ $0.host }) else {
            throw FileProviderError(.domainDisabled, "the domain is not mounted yet")
        }
        return host
    }

    func remotePath(of identifier: ItemIdentifier) -> [String]? {
        known { try replica.database.remotePath(of: identifier) } ?? nil
    }

    func remoteTrashPath(of identifier: ItemIdentifier) -> [String]? {
        known { try replica.database.remoteTrashPath(of: identifier) } ?? nil
    }

    func identifier(ofChildNamed name: String, in directory: ItemIdentifier) -> ItemIdentifier? {
        known { try replica.database.identifier(ofChildNamed: name, in: directory) } ?? nil
    }

    func identifiers(ofChildrenNamed names: [String], in directory: ItemIdentifier) -> [ItemIdentifier?] {
        known { try replica.database.identifiers(ofChildrenNamed: names, in: directory) } ?? names.map { _ in nil }
    }

    func visitKnownItems(in directory: ItemIdentifier, _ visit: (KnownItem) -> Bool) {
        _ = known { try replica.database.visitKnownItems(in: directory, visit) }
    }

    func knownItems(in directory: ItemIdentifier) -> [KnownItem] {
        known { try replica.database.knownItems(in: directory) } ?? []
    }

    func knownItems(withContentVersions versions: [[UInt8]]) -> [KnownItem] {
        known { try replica.database.knownItems(withContentVersions: versions) } ?? []
    }

    func knownIdentifiers(among identifiers: [ItemIdentifier]) -> Set<ItemIdentifier> {
        // Whatever cannot be looked up might be known.
        known { try replica.database.knownIdentifiers(among: identifiers) } ?? Set(identifiers)
    }

    func materializedDirectories() -> [ItemIdentifier] {
        known { try replica.database.materializedDirectories().map(\.identifier) } ?? []
    }

    func enumeratorForMaterializedItems() -> any FileProviderEnumerator { enumerator(of: .materialized) }

    func enumeratorForPendingItems() -> any FileProviderEnumerator { enumerator(of: .pending) }

    private func enumerator(of set: LocalSet) -> any FileProviderEnumerator {
        let engine = state.withLock { $0.engine }
        return LocalSetEnumerator(set: set, database: replica.database) { try engine?.noteWrittenFiles() }
    }

    func report(_ warning: String) {
        let engine = state.withLock { state in
            if state.engine == nil, state.warnings.count < 100 { state.warnings.append(warning) }
            return state.engine
        }
        engine?.warnings.report(warning)
    }

    private func known<Value>(_ query: () throws -> Value) -> Value? {
        do {
            return try query()
        } catch {
            logger.error("the replica cannot be read: \(error)")
            return nil
        }
    }
}
