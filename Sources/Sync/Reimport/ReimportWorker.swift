import FileProvider
import Replica
import Synchronization

/// Carries out a reimport: removes the identifiers, has `Uploads` offer the items, and tells the provider when all were
/// offered. Its state is in the database, so it continues after a crash.
actor ReimportWorker: SyncPart {
    let context: SyncContext
    private let uploads: WakeSignal
    private let onFinish: @Sendable () -> Void
    private var failures = 0
    private nonisolated let signal: WakeSignal

    /// - Parameters:
    ///   - uploads: wakes `Uploads`.
    ///   - onFinish: called when a reimport is complete.
    init(
        _ context: SyncContext, signal: WakeSignal, uploads: WakeSignal, onFinish: @escaping @Sendable () -> Void
    ) {
        self.context = context
        self.uploads = uploads
        self.onFinish = onFinish
        self.signal = signal
    }

    /// There is something to do, or may be. Returns at once; from any thread.
    nonisolated func wake() { signal.wake() }

    func start() {
        signal.run {
            await self.goOn()
            return .zero
        }
        wake()
    }

    nonisolated func stop() async {
        signal.stop()
        await signal.ended()
    }

    /// Accepts a reimport. Returns when that is recorded.
    ///
    /// - Throws: `noSuchItem`; `featureUnsupported` where the remote cannot be written, or may not be.
    func begin(below number: InodeNumber, isAsked: Bool) async throws {
        guard calls.provider.features.writing else {
            throw FileProviderError(
                .featureUnsupported, "this remote cannot be written, so nothing can be offered to it again")
        }
        guard !calls.isReadOnly else {
            throw FileProviderError(
                .featureUnsupported,
                "the domain is read-only, so nothing can be offered to its remote: mount it with --no-read-only first")
        }
        try await replica.beginReimport(below: number, isAsked: isAsked)
        wake()
    }

    /// Does what can be done now, in a test that picks for itself.
    func goOn() async {
        do {
            guard try !replica.database.reimports.requests().isEmpty else { return }
            while try await replica.continueReimport() { try Task.checkCancellation() }
            uploads.wake()
            guard try await replica.completeReimports() else { return }
            try await tellTheEnd()
            failures = 0
            warnings.succeeded(.reimport)
            events.tell(.importFinished, of: .root, named: "")
            onFinish()
        } catch is CancellationError {
        } catch let error as FileProviderError where error.code.reaction == .latchDomain {
            // The remote's return wakes us.
        } catch {
            warnings.report("the reimport cannot go on: \(error)", of: .reimport)
            guard let error = error as? FileProviderError, Backoff.isTransient(error) else { return }
            signal.wake(after: Backoff.listing.pause(after: failures))
            failures += 1
        }
    }

    /// Tells the provider that everything has been offered to it: once, but for a crash before that could be noted.
    private func tellTheEnd() async throws {
        let hasBegun = Mutex(false)
        do {
            try await calls.make(.importDidFinish, for: FileProviderRequest(reason: .synchronization)) { provider in
                hasBegun.withLock { $0 = true }
                await provider.importDidFinish()
            }
        } catch {
            // A provider that was told and did not return was still told.
            guard hasBegun.withLock({ $0 }) else { throw error }
            warnings.report("the provider was told that the import is complete, and did not return: \(error)")
        }
        // Also when this task was cancelled, in which the database would do nothing.
        try await Task { [replica] in try await replica.forgetCompleteReimports() }.value
    }
}
