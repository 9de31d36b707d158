import FileProvider
import SystemPackage

/// The only way to call a provider. It limits concurrency by lane, fails at once while the domain is latched, retries
/// transient failures, and turns each failure into a ``FileProviderError``. It refuses the calls that would change the remote of a
/// read-only domain.
final class ProviderCalls: Sendable {
    let provider: any FileProviderReplicatedExtension
    /// Whether nothing may be changed on the remote.
    let isReadOnly: Bool
    let connection: Connection
    let traffic = ContentTraffic()
    private let metrics: CallMetrics
    private let lanes: CallLanes
    private let onLatch: @Sendable () -> Void
    private let onRecovery: @Sendable () -> Void
    private let watchdog: Watchdog
    private let root: RootProbe
    private let probe: StandstillProbe?
    private static let attempts = 3
    /// Before the root is asked for beside a call that stands still. A listing of rclone's that goes on has an answer every ten seconds.
    static let usualPauses = Backoff(first: .seconds(15), longest: .seconds(60))

    init(
        provider: any FileProviderReplicatedExtension, isReadOnly: Bool = false, connection: Connection,
        patience: Duration, pausesBeforeQuestions: Backoff = ProviderCalls.usualPauses, metrics: CallMetrics,
        onLatch: @escaping @Sendable () -> Void, onRecovery: @escaping @Sendable () -> Void
    ) {
        self.provider = provider
        self.isReadOnly = isReadOnly
        self.connection = connection
        self.metrics = metrics
        self.onLatch = onLatch
        self.onRecovery = onRecovery
        watchdog = Watchdog(patience: patience)
        let root = RootProbe(provider: provider, patience: patience)
        self.root = root
        lanes = CallLanes(limit: provider.features.concurrentCalls)
        if provider.features.isAskedBesideCalls {
            probe = StandstillProbe(
                pauses: pausesBeforeQuestions,
                ask: { [traffic] in
                    switch connection.state {
                    case .paused: return nil
                    case .offline, .unauthenticated: return connection.failure
                    case .online: break
                    }
                    let moved = traffic.total
                    // A transfer that moves is an answer, however long the root takes beside it.
                    guard let failure = await root.silence(), traffic.total == moved else { return nil }
                    return failure
                },
                onSilence: { if connection.failure == nil, connection.failed(with: $0) { onLatch() } })
        } else {
            probe = nil
        }
    }

    /// What a change says that is not sent.
    static let readOnlyRefusal = FileProviderError.posix(
        .readOnlyFileSystem,
        "the domain is read-only, so nothing is sent to the remote: mount it with --no-read-only to send it")

    /// Makes a call. A transient failure is retried a few times before it is thrown.
    ///
    /// - Parameters:
    ///   - call: what `body` calls.
    ///   - recognizesOnly: a `createItem` with which the provider looks whether it has the item, and makes nothing.
    ///   - urgency: whether a process waits for the call, when that may change; else it follows from the request.
    ///   - progress: told whenever something arrives, so that the call is not given up for making no progress.
    func make<Value: Sendable>(
        _ call: CallName, for request: FileProviderRequest, recognizesOnly: Bool = false,
        urgency: CallUrgency? = nil, progress: CallProgress = CallProgress(),
        _ body: @escaping @Sendable (any FileProviderReplicatedExtension) async throws -> Value
    ) async throws(FileProviderError) -> Value {
        let urgency = urgency ?? CallUrgency(Self.isUrgent(request))
        var attempt = 1
        while true {
            try await admit()
            do {
                let value = try await lanes.run(urgency) {
                    // Calls that were queued when the remote became unreachable must not try it one after the other.
                    do throws(FileProviderError) { try await admit() } catch { throw Refusal(error: error) }
                    progress.advance()
                    let context = CallContext(
                        isChange: call.isChange, urgency: urgency, wait: progress.wait,
                        answered: progress.advance)
                    let start = ContinuousClock.now
                    do {
                        if isReadOnly, call.isChange, !recognizesOnly { throw Self.readOnlyRefusal }
                        let value = try await CallContext.$current.withValue(context) {
                            try await watchdog.run(progress, probe: probe) { [provider] in try await body(provider) }
                        }
                        metrics.record(call, took: .now - start, error: nil)
                        return value
                    } catch {
                        metrics.record(call, took: .now - start, error: error)
                        // While its place is kept: calls that wait for one do not ask before it is known.
                        throw await judged(error)
                    }
                }
                if connection.succeeded() { onRecovery() }
                return value
            } catch {
                if let refusal = error as? Refusal { throw refusal.error }
                let failure = Self.failure(from: error)
                if connection.failed(with: failure) { onLatch() }
                guard Self.isTransient(error), attempt < Self.attempts, !Task.isCancelled else { throw failure }
                try? await Task.sleep(for: .milliseconds(50 << (2 * attempt)))
                attempt += 1
            }
        }
    }

    /// While the domain is latched, lets a call through only when an attempt is due and the remote answers for its root: a
    /// call to a remote that hangs would take as long as the one that has latched it.
    private func admit() async throws(FileProviderError) {
        guard let failure = connection.failure else { return }
        try connection.check(isAttempt: true)
        guard let answer = await root.askNow() else { throw failure }
        if case .fails(let error) = answer {
            // It may be away for another reason by now, which the user is told.
            let now = Self.failure(from: error)
            let present = now.code.reaction == .latchDomain ? now : failure
            connection.failed(with: present)
            throw present
        }
        if connection.succeeded() { onRecovery() }
    }

    /// A failure that could concern the whole domain concerns the item alone where the remote answers for its root. A call
    /// without progress concerns the whole domain where it does not.
    private func judged(_ error: any Error) async -> any Error {
        guard let failure = error as? FileProviderError, connection.failure == nil else { return error }
        if failure.code.reaction == .latchDomain { return await root.answers() ? failure.ofItemAlone : failure }
        guard failure.code == .timedOut, !Task.isCancelled else { return error }
        guard await !root.answers() else { return failure }
        return RootProbe.silence(after: failure)
    }

    /// Whether a process waits for what is requested.
    static func isUrgent(_ request: FileProviderRequest) -> Bool {
        request.reason != .lookAhead && request.reason != .synchronization
    }

    private struct Refusal: Error {
        var error: FileProviderError
    }

    /// Whether a failure is of no known kind, or says that it is temporary: such a call is made again at once.
    private static func isTransient(_ error: any Error) -> Bool {
        guard let error = error as? FileProviderError else {
            return !(error is CancellationError) && !(error is Errno)
        }
        return error.code == .providerDomainTemporarilyUnavailable
    }

    static func failure(from error: any Error) -> FileProviderError {
        switch error {
        case let error as FileProviderError: error
        case let error as Errno: .posix(error)
        case is CancellationError: FileProviderError(.userCancelled)
        default: FileProviderError(.posix, "\(error)", errno: .ioError, underlyingErrors: [error])
        }
    }
}
