import FileProvider
import Logging
import Replica
import Sync
import Synchronization
import SystemPackage

/// A mounted domain, as far as its provider's manager needs it.
protocol ManagedDomain: AnyObject, Sendable {
    var engine: SyncEngine { get }
    func evictItem(identifier: ItemIdentifier) async throws(FileProviderError)
    func requestDownloadForItem(
        withIdentifier identifier: ItemIdentifier, requestedRange: Range<Int64>?
    ) async throws(FileProviderError)
    func requestModification(
        of fields: ItemFields, forItemWithIdentifier identifier: ItemIdentifier
    ) throws(FileProviderError)
}

/// The manager of a domain: the provider's view of the system.
final class DomainManager: FileProviderManager {
    let domain: FileProviderDomain
    let stateDirectory: FilePath
    private let replica: Replica
    private let logger: Logger
    private let state = Mutex(State())

    private struct State {
        /// Weak, because the host retains the provider, which retains its manager. A cycle would keep the provider's
        /// descriptors open after the unmount.
        weak var host: (any ManagedDomain)?
        /// Signals and warnings of the provider before the domain is mounted.
        var isSignalled = false
        var warnings: [String] = []
    }

    init(domain: FileProviderDomain, stateDirectory: FilePath, replica: Replica, logger: Logger) {
        self.domain = domain
        self.stateDirectory = stateDirectory
        self.replica = replica
        self.logger = logger
    }

    /// Connects the manager to the mounted domain, and delivers earlier signals and warnings. Called once.
    func connect(to host: any ManagedDomain) {
        let (isSignalled, warnings) = state.withLock { state in
            state.host = host
            return (state.isSignalled, state.warnings)
        }
        for warning in warnings { host.engine.warnings.report(warning) }
        if isSignalled { host.engine.signal() }
    }

    private var host: (any ManagedDomain)? { state.withLock { $0.host } }

    var store: any ProviderStore { replica.providerStore }

    func signalEnumerator() {
        let host = state.withLock { state in
            state.isSignalled = true
            return state.host
        }
        host?.engine.signal()
    }

    func signalErrorResolved(_ code: FileProviderError.Code) {
        guard let engine = host?.engine else { return }
        Task { await engine.errorWasResolved(code) }
    }

    func reimportItems(below identifier: ItemIdentifier) async throws {
        guard let item = try replica.database.known(identifier) else {
            throw FileProviderError(.noSuchItem, itemIdentifier: identifier)
        }
        if let engine = host?.engine { return try await engine.reimport(below: item.inode.number) }
        // The engine begins it when it starts: only that knows whether the remote can be written.
        try await replica.askForReimport(below: item.inode.number)
        // It may have started meanwhile.
        await host?.engine.beginAskedReimports()
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

    private func mounted() throws -> any ManagedDomain {
        guard let host else {
            throw FileProviderError(.domainDisabled, "the domain is not mounted yet")
        }
        return host
    }

    func remotePath(of identifier: ItemIdentifier) -> [String]? {
        known { try replica.database.remoteItems.path(of: identifier) } ?? nil
    }

    func remoteTrashPath(of identifier: ItemIdentifier) -> [String]? {
        known { try replica.database.remoteItems.trashPath(of: identifier) } ?? nil
    }

    func identifier(ofChildNamed name: String, in directory: ItemIdentifier) -> ItemIdentifier? {
        known { try replica.database.remoteItems.identifier(ofChildNamed: name, in: directory) } ?? nil
    }

    func identifiers(ofChildrenNamed names: [String], in directory: ItemIdentifier) -> [ItemIdentifier?] {
        known { try replica.database.remoteItems.identifiers(ofChildrenNamed: names, in: directory) }
            ?? names.map { _ in nil }
    }

    func visitKnownItems(in directory: ItemIdentifier, _ visit: (KnownItem) -> Bool) {
        _ = known { try replica.database.remoteItems.visitItems(in: directory, visit) }
    }

    func knownItems(in directory: ItemIdentifier) -> [KnownItem] {
        known { try replica.database.remoteItems.items(in: directory) } ?? []
    }

    func knownItems(withContentVersions versions: [[UInt8]]) -> [KnownItem] {
        known { try replica.database.remoteItems.items(withContentVersions: versions) } ?? []
    }

    func contentVersionsToBeDeleted(among versions: [[UInt8]]) -> Set<[UInt8]> {
        // When the database cannot be read, any of them may be.
        known { try replica.database.remoteItems.contentVersionsToBeDeleted(among: versions) } ?? Set(versions)
    }

    func knownIdentifiers(among identifiers: [ItemIdentifier]) -> Set<ItemIdentifier> {
        // When the database cannot be read, any of them may be known.
        known { try replica.database.remoteItems.knownIdentifiers(among: identifiers) } ?? Set(identifiers)
    }

    func knownVersion(of identifier: ItemIdentifier) -> ItemVersion? {
        known { try replica.database.remoteItems.version(of: identifier) } ?? nil
    }

    func materializedDirectories() -> [ItemIdentifier] {
        known { try replica.database.materializedDirectories().map(\.identifier) } ?? []
    }

    func enumeratorForMaterializedItems() -> any FileProviderEnumerator { enumerator(of: .materialized) }

    func enumeratorForPendingItems() -> any FileProviderEnumerator { enumerator(of: .pending) }

    func visitPendingItems(_ visit: (FileProviderItem) -> Bool) throws {
        try host?.engine.noteWrittenFiles()
        var place: Int64? = 0
        while let from = place {
            let members = try replica.database.localSets.members(of: .pending, from: from, limit: 1000)
            for item in members.items where !visit(item) { return }
            place = members.next
        }
    }

    private func enumerator(of set: LocalSet) -> any FileProviderEnumerator {
        LocalSetEnumerator(set: set, database: replica.database, engine: host?.engine)
    }

    func report(_ warning: String) {
        let host = state.withLock { state in
            if state.host == nil, state.warnings.count < 100 { state.warnings.append(warning) }
            return state.host
        }
        host?.engine.warnings.report(warning)
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
