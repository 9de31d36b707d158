import FileProvider

/// Asks the remote for its root after a call has failed in a way that could concern the whole domain: what fails for one item
/// alone, such as a response that was cut off or a file that is forbidden, is no reason to ask nothing more of the remote.
///
/// Calls that fail together share one probe.
actor RootProbe {
    private let provider: any FileProviderReplicatedExtension
    private let request = FileProviderRequest(reason: .synchronization)
    private let watchdog: Watchdog
    private var running: Task<Answer, Never>?

    enum Answer: Sendable {
        case isThere
        case fails(any Error)
    }

    /// A root that takes longer counts as one that does not answer. A server that is merely slow answers before.
    private static let patience = Duration.seconds(30)

    init(provider: any FileProviderReplicatedExtension, patience: Duration) {
        self.provider = provider
        watchdog = Watchdog(patience: min(patience, Self.patience))
    }

    /// As ``ask()``; nil at once while another call asks.
    func askNow() async -> Answer? {
        running == nil ? await ask() : nil
    }

    /// Whether the remote answers for its root.
    func answers() async -> Bool {
        switch await ask() {
        case .isThere: true
        case .fails: false
        }
    }

    /// Why the remote as a whole does not answer; nil if it does, also if it refuses.
    func silence() async -> FileProviderError? {
        guard case .fails(let error as FileProviderError) = await ask() else { return nil }
        if error.code.reaction == .latchDomain { return error }
        return error.code == .timedOut ? Self.silence(after: error) : nil
    }

    /// The error of a call that has got no answer, where the remote does not answer either.
    static func silence(after failure: FileProviderError) -> FileProviderError {
        FileProviderError(
            .serverUnreachable, "the remote has stopped answering (\(failure.message))", underlyingErrors: [failure])
    }

    private func ask() async -> Answer {
        if let running { return await running.value }
        let task = Task { [provider, request, watchdog] () -> Answer in
            do {
                // Waiting for a connection behind other requests is no silence of the remote.
                let progress = CallProgress()
                let context = CallContext(
                    isChange: false, urgency: CallUrgency(true), wait: progress.wait, answered: progress.advance)
                _ = try await CallContext.$current.withValue(context) {
                    try await watchdog.run(progress) { try await provider.item(for: .rootContainer, request: request) }
                }
                return .isThere
            } catch {
                return .fails(error)
            }
        }
        running = task
        let answer = await task.value
        running = nil
        return answer
    }
}

extension FileProviderError {
    /// The failure as one of the item that was asked for, where the remote as a whole answers: a process sees the same
    /// errno, and the domain is not latched.
    var ofItemAlone: FileProviderError {
        var error = self
        switch code {
        case .notAuthenticated: (error.code, error.errno) = (.fileReadNoPermission, readerErrno)
        case .serverUnreachable, .providerNotFound: (error.code, error.errno) = (.posix, readerErrno)
        default: break
        }
        return error
    }
}
