import Replica

/// Tells the provider that the set of materialized or of pending items has changed, at most once a second. The
/// provider enumerates the set to see which items changed.
actor LocalSetNotifier {
    private let replica: Replica
    private let set: LocalSet
    private let warnings: Warnings
    private let tell: @Sendable () async -> Void
    private var told: Int64 = 0
    private nonisolated let signal = WakeSignal()

    /// Changes within this time are one notification.
    private static let delay = Duration.milliseconds(100)
    private static let pause = Duration.seconds(1)

    init(
        of set: LocalSet, replica: Replica, warnings: Warnings, tell: @escaping @Sendable () async -> Void
    ) {
        self.set = set
        self.replica = replica
        self.warnings = warnings
        self.tell = tell
    }

    /// Something may have changed. Returns at once; from any thread.
    nonisolated func wake() {
        signal.wake()
    }

    func start() {
        do {
            try replica.database.localSets.followSets()
        } catch {
            warnings.report("the set of \(set) items cannot be followed: \(error)")
        }
        signal.run {
            try? await Task.sleep(for: Self.delay)
            return await self.look() ? Self.pause : .zero
        }
        wake()
    }

    nonisolated func stop() { signal.stop() }

    /// - Returns: whether there was something to tell.
    private func look() async -> Bool {
        guard !Task.isCancelled else { return false }
        do {
            let last = try replica.database.localSets.lastChange(of: set)
            guard last != told else { return false }
            try replica.database.localSets.shortenHistories()
            await tell()
            told = last
            return true
        } catch {
            warnings.report("whether the set of \(set) items has changed cannot be found out: \(error)")
            return false
        }
    }
}
