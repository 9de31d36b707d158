import FileProvider
import Synchronization

/// When to look for changes unasked: on a signal, on a timer, and, while the remote is away, to find out whether it is
/// back.
final class RefreshSchedule: Sendable {
    private let state: Mutex<State>
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation
    private struct State {
        var polling: Polling
        var tasks: [Task<Void, Never>] = []
        /// Requests a round at each interval; nil while stopped, and where no interval is set.
        var timer: Task<Void, Never>?
        var isRunning = false
        /// Waits to ask for a round again that has failed.
        var retry: Task<Void, Never>?
        /// How many rounds in a row have failed because of something that passes.
        var failures = 0
    }

    private let probes: AsyncStream<Void>
    private let probeSignal: AsyncStream<Void>.Continuation

    init(polling: Polling) {
        state = Mutex(State(polling: polling))
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (probes, probeSignal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Asks for a round soon.
    func refresh() {
        signal.yield()
    }

    /// A round has ended. One that failed with a transient error is repeated after a pause, whatever the polling.
    func roundEnded(with failure: FileProviderError?) {
        state.withLock { state in
            state.retry?.cancel()
            state.retry = nil
            guard state.isRunning, let failure, Backoff.isTransient(failure) else {
                state.failures = 0
                return
            }
            let pause = Backoff.pause(after: state.failures)
            state.failures += 1
            state.retry = Task {
                try? await Task.sleep(for: pause)
                if !Task.isCancelled { self.refresh() }
            }
        }
    }

    /// The remote is unreachable: probes it until it answers.
    func probe() {
        probeSignal.yield()
    }

    /// Another way of looking holds from now on.
    func change(to polling: Polling) {
        state.withLock { state in
            state.polling = polling
            if state.isRunning { startTimer(&state) }
        }
    }

    func run(refresh: @escaping @Sendable () async -> Void, connection: Connection) {
        let started = [
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
        state.withLock { state in
            state.tasks = started
            state.isRunning = true
            startTimer(&state)
        }
    }

    private func startTimer(_ state: inout State) {
        state.timer?.cancel()
        state.timer = nil
        guard case .every(let interval) = state.polling else { return }
        state.timer = Task { [signal] in
            while true {
                try? await Task.sleep(for: interval)
                guard !Task.isCancelled else { return }
                signal.yield()
            }
        }
    }

    func stop() {
        signal.finish()
        probeSignal.finish()
        state.withLock { state in
            for task in state.tasks { task.cancel() }
            state.timer?.cancel()
            state.retry?.cancel()
            state.isRunning = false
        }
    }
}
