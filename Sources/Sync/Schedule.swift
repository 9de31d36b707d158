import Synchronization

/// When to look for changes unasked: on a signal, on a timer, and, while the remote is away, to find out whether it is
/// back.
final class Schedule: Sendable {
    private let polling: Polling
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation
    private let tasks = Mutex<[Task<Void, Never>]>([])
    private let probes: AsyncStream<Void>
    private let probeSignal: AsyncStream<Void>.Continuation

    init(polling: Polling) {
        self.polling = polling
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (probes, probeSignal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Asks for a round soon.
    func refresh() {
        signal.yield()
    }

    /// The remote has gone away: tries until it is back.
    func probe() {
        probeSignal.yield()
    }

    func run(refresh: @escaping @Sendable () async -> Void, connection: Connection) {
        var started = [
            Task { [signals] in
                for await _ in signals { await refresh() }
            },
            Task { [probes] in
                for await _ in probes {
                    while connection.failure != nil, !Task.isCancelled {
                        try? await Task.sleep(for: connection.pauseBeforeProbe)
                        if connection.failure != nil { await refresh() }
                    }
                }
            },
        ]
        if case .every(let pollInterval) = polling {
            started.append(
                Task { [signal] in
                    while !Task.isCancelled {
                        try? await Task.sleep(for: pollInterval)
                        signal.yield()
                    }
                })
        }
        let all = started
        tasks.withLock { $0 = all }
    }

    func stop() {
        signal.finish()
        probeSignal.finish()
        for task in tasks.withLock({ $0 }) { task.cancel() }
    }
}
