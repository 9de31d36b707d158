import FileProvider
import Replica

/// Finds out whether nearly nothing is in the remote's root any more of what is known, as on a server whose disk is not
/// mounted: then it is not one item that was removed, and all changes are held. One listing answers all that ask meanwhile.
actor RootCheck: SyncPart {
    let context: SyncContext
    private let onEmptied: @Sendable () -> Void
    private let request = FileProviderRequest(reason: .synchronization)
    private var running: Task<Bool, any Error>?
    private var trustedUntil: ContinuousClock.Instant?

    private static let leastTrust = Duration.seconds(2)
    private static let longestTrust = Duration.seconds(120)
    /// A listing is trusted for so many times its duration: on a slow line it must not delay all that is sent.
    private static let trustPerListing = 10
    /// A root that has so many of the known items is not emptied.
    private static let enough = 500

    /// - Parameter onEmptied: has all changes of the remote taken in.
    init(_ context: SyncContext, onEmptied: @escaping @Sendable () -> Void) {
        self.context = context
        self.onEmptied = onEmptied
    }

    /// Whether nearly all is missing. Not while items are reimported.
    func isEmptied() async throws -> Bool {
        if context.isReimporting { return false }
        if let trustedUntil, .now < trustedUntil { return false }
        if let running { return try await running.value }
        let start = ContinuousClock.now
        let task = Task { try await look() }
        running = task
        defer { running = nil }
        let isEmptied = try await task.value
        if !isEmptied { trustedUntil = .now + trust(after: .now - start) }
        return isEmptied
    }

    private func trust(after duration: Duration) -> Duration {
        min(Self.longestTrust, max(Self.leastTrust, duration * Self.trustPerListing))
    }

    private func look() async throws -> Bool {
        let database = replica.database.remoteItems
        var there: Set<ItemIdentifier> = []
        try await calls.enumerate(.rootContainer, for: request) { items in
            there.formUnion(try database.knownIdentifiers(among: items.map(\.itemIdentifier)))
            return there.count < Self.enough
        }
        if there.count >= Self.enough { return false }
        let missing = Set(try database.items(in: .rootContainer).map(\.itemIdentifier)).subtracting(there)
        // Counting what is below takes time in a large domain.
        guard missing.count > there.count else { return false }
        let (gone, known) = (try replica.database.countVanishing(missing), try replica.database.countKnown())
        try guardian.forgetReturned { try replica.database.item($0) != nil }
        guard guardian.isNearlyAll(gone: gone, of: known), !guardian.admits(gone: gone, of: known) else { return false }
        onEmptied()
        return true
    }
}
