import FileProvider
import Replica

/// Tells the provider that the set of materialized or of pending items has changed, at most once a second. The
/// provider enumerates the set to see which items changed.
actor LocalSetNotifier {
    private let replica: Replica
    private let set: LocalSet
    private let warnings: Warnings
    private let tell: @Sendable () async -> Void
    private var told: Int64 = 0
    private var loop: Task<Void, Never>?
    private nonisolated let signal: WakeSignal

    /// Changes within this time are one notification.
    private static let delay = Duration.milliseconds(100)
    private static let pause = Duration.seconds(1)

    init(
        of set: LocalSet, replica: Replica, warnings: Warnings, signal: WakeSignal = WakeSignal(),
        tell: @escaping @Sendable () async -> Void
    ) {
        self.set = set
        self.replica = replica
        self.warnings = warnings
        self.tell = tell
        self.signal = signal
    }

    /// Something may have changed. Returns at once; from any thread.
    nonisolated func wake() {
        signal.wake()
    }

    func start() {
        guard loop == nil else { return }
        do {
            try replica.database.followSets()
        } catch {
            warnings.report("the set of \(set) items cannot be followed: \(error)")
        }
        loop = Task { [signal] in
            for await _ in signal.wakes {
                try? await Task.sleep(for: Self.delay)
                guard !Task.isCancelled else { return }
                if await self.look() { try? await Task.sleep(for: Self.pause) }
            }
        }
        wake()
    }

    func stop() {
        signal.finish()
        loop?.cancel()
    }

    /// - Returns: whether there was something to tell.
    private func look() async -> Bool {
        do {
            let last = try replica.database.lastChange(of: set)
            guard last != told else { return false }
            try replica.database.shortenHistories()
            await tell()
            told = last
            return true
        } catch {
            warnings.report("whether the set of \(set) items has changed cannot be found out: \(error)")
            return false
        }
    }
}
