import FileProvider
import Replica

/// Finds out whether nearly nothing is in the remote's root any more of what is known, as on a server whose disk is not
/// mounted: then it is not one item that was removed, and all changes are held until another look finds the root to be there. One
/// listing answers all that ask meanwhile.
actor RootCheck: SyncPart {
    let context: SyncContext
    private let request = FileProviderRequest(reason: .synchronization)
    private var running: Task<Bool, any Error>?
    private var trustedUntil: ContinuousClock.Instant?
    /// The looks in a row after which changes were held.
    private var looks = 0
    private nonisolated let signal = WakeSignal()

    private static let leastTrust = Duration.seconds(2)
    private static let longestTrust = Duration.seconds(120)
    /// A listing is trusted for so many times its duration: on a slow line it must not delay all that is sent.
    private static let trustPerListing = 10
    /// A root that has so many of the known items is not emptied.
    private static let enough = 500

    init(_ context: SyncContext) { self.context = context }

    /// From now on it looks again by itself while changes are held because of the root.
    nonisolated func start() {
        signal.run {
            await self.lookAgain()
            return .zero
        }
    }

    nonisolated func stop() { signal.stop() }

    /// Whether nearly all is missing, and changes are held for that. Not while items are reimported.
    func isEmptied() async throws -> Bool {
        if context.isReimporting { return false }
        if let trustedUntil, .now < trustedUntil { return false }
        if let running { return try await running.value }
        let start = ContinuousClock.now
        let task = Task { try await look() }
        running = task
        defer {
            running = nil
            lookLater()
        }
        let isEmptied = try await task.value
        if !isEmptied { trustedUntil = .now + trust(after: .now - start) }
        return isEmptied
    }

    /// Finds out whether changes that are held because of the root may be sent by now. Where that cannot be found out they stay held.
    func lookAgain() async {
        guard guardian.isHeldByRoot else { return }
        if context.isReimporting { return lookLater() }
        _ = try? await isEmptied()
    }

    private func lookLater() {
        guard guardian.isHeldByRoot else {
            looks = 0
            return
        }
        signal.wake(after: Backoff.listing.pause(after: looks))
        looks += 1
    }

    private func trust(after duration: Duration) -> Duration {
        min(Self.longestTrust, max(Self.leastTrust, duration * Self.trustPerListing))
    }

    private func look() async throws -> Bool {
        guard let (gone, known) = try await missing() else {
            guardian.rootIsThere()
            return false
        }
        return guardian.holdForRoot(gone: gone, of: known)
    }

    /// How many of the known items are missing with what is missing in the root, and how many are known; nil unless that is nearly all.
    private func missing() async throws -> (gone: Int, known: Int)? {
        let database = replica.database.remoteItems
        var there: Set<ItemIdentifier> = []
        try await calls.enumerate(.rootContainer, for: request) { items in
            there.formUnion(try database.knownIdentifiers(among: items.map(\.itemIdentifier)))
            return there.count < Self.enough
        }
        if there.count >= Self.enough { return nil }
        let missing = Set(try database.items(in: .rootContainer).map(\.itemIdentifier)).subtracting(there)
        // Counting what is below takes time in a large domain.
        guard missing.count > there.count else { return nil }
        let (gone, known) = (try replica.database.countVanishing(missing), try replica.database.countKnown())
        try guardian.forgetReturned { try replica.database.item($0) != nil }
        return guardian.isNearlyAll(gone: gone, of: known) ? (gone: gone, known: known) : nil
    }
}
