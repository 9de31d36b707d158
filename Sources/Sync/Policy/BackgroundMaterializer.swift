import FileProvider
import Replica

/// Materializes in the background what no process waits for: items that are kept downloaded, items that were
/// materialized before the remote changed them, and items in the trash, so that they are available offline. Its calls are in the background lane.
///
/// It keeps no list: it queries the database for what is missing after each commit, so items that appear or move
/// below a kept directory, failures and interrupted downloads are all found.
actor BackgroundMaterializer: SyncPart {
    /// A failed download, and when to retry it.
    private struct Retry {
        var isFile: Bool
        var version: [UInt8]
        var attempts: Int
        var next: ContinuousClock.Instant
        /// The item's own; nil for one that concerns the whole remote.
        var failure: FileProviderError?
    }

    nonisolated let context: SyncContext
    private let listings: Listings
    private let downloads: Downloads
    private var queue: [WantedContent] = []
    private var running: [InodeNumber: Task<Void, Never>] = [:]
    private var retries: [InodeNumber: Retry] = [:]
    private var isStopped = false
    private nonisolated let signal: WakeSignal

    private static let atOnce = 4
    private static let planSize = 64
    private static let shortestPause = Duration.milliseconds(50)

    init(_ context: SyncContext, listings: Listings, downloads: Downloads, signal: WakeSignal) {
        self.context = context
        self.listings = listings
        self.downloads = downloads
        self.signal = signal
    }

    /// There may be something to do. Returns at once; from any thread.
    nonisolated func wake() {
        signal.wake()
    }

    func start() {
        signal.run {
            let start = ContinuousClock.now
            await self.pump()
            // The query of a large tree takes long, and must not take all the time.
            return max(Self.shortestPause, (ContinuousClock.now - start) * 10)
        }
        wake()
    }

    /// Begins nothing any more and ends what is under way.
    func stop() {
        isStopped = true
        signal.stop()
        for task in running.values { task.cancel() }
    }

    func retryNow() {
        retries = [:]
        wake()
    }

    /// When an item that could not be had is tried again; nil for one that does not wait for that.
    func nextTry(of number: InodeNumber) -> Duration? {
        retries[number].map { max(.zero, $0.next - .now) }
    }

    /// What could not be fetched because of an error of its own, and waits for the next attempt.
    var failures: [WantedContent: FileProviderError] {
        let now = ContinuousClock.now
        return Dictionary(
            uniqueKeysWithValues: retries.compactMap { number, retry -> (WantedContent, FileProviderError)? in
                guard retry.next > now, running[number] == nil, let failure = retry.failure else { return nil }
                return (WantedContent(number: number, isFile: retry.isFile, version: retry.version), failure)
            })
    }

    // MARK: - Private

    private func pump() {
        guard !isStopped, connection.state == .online else { return }
        do {
            // What is not kept any more is given up, so that it can be evicted.
            for (number, task) in running where try !replica.database.isWanted(number) { task.cancel() }
            queue = []
            try begin()
            warnings.succeeded(.keepingDownloaded)
        } catch {
            warnings.report("what is kept downloaded cannot be found out: \(error)", of: .keepingDownloaded)
        }
    }

    private func begin() throws {
        guard !isStopped, connection.state == .online else { return }
        while running.count < Self.atOnce {
            if queue.isEmpty {
                queue = try plan().reversed()
                if queue.isEmpty { return sleepUntilRetry() }
            }
            guard let next = queue.popLast() else { return }
            guard running[next.number] == nil, try replica.database.isWanted(next.number) else { continue }
            running[next.number] = Task {
                let failure = await self.bring(next)
                self.ended(next, failure)
            }
        }
    }

    private func plan() throws -> [WantedContent] {
        let now = ContinuousClock.now
        return try replica.database.wantedContent(limit: Self.planSize) { content in
            guard running[content.number] == nil else { return false }
            guard let retry = retries[content.number] else { return true }
            return retry.next <= now || retry.version != content.version
        }
    }

    private func bring(_ content: WantedContent) async -> FileProviderError? {
        let request = FileProviderRequest(reason: .lookAhead)
        do throws(FileProviderError) {
            if content.isFile {
                try await downloads.provide(content.number, version: nil, range: nil, request: request)
                await downloads.settle(content.number)
            } else {
                try await listings.list(content.number, beyond: nil, request: request)
            }
            return nil
        } catch {
            return error
        }
    }

    private func ended(_ content: WantedContent, _ failure: FileProviderError?) {
        running[content.number] = nil
        let isHere = (try? replica.database.isWanted(content.number)) == false
        if isHere {
            retries[content.number] = nil
        } else {
            let known = retries[content.number].flatMap { $0.version == content.version ? $0 : nil }
            // What concerns the whole remote is tried again when that has passed.
            let isOwn = failure.map { $0.code.reaction != .latchDomain && $0.code.reaction != .stop } ?? true
            let attempts = (known?.attempts ?? 0) + (isOwn ? 1 : 0)
            retries[content.number] = Retry(
                isFile: content.isFile, version: content.version, attempts: attempts,
                next: .now + Backoff.download.pause(after: attempts - 1), failure: isOwn ? failure : nil)
        }
        guard !queue.isEmpty else { return wake() }
        do {
            try begin()
        } catch {
            wake()
        }
    }

    private func sleepUntilRetry() {
        let now = ContinuousClock.now
        let next = retries.values.map(\.next).filter { $0 > now }.min()
        signal.wake(after: next.map { $0 - now + .milliseconds(10) })
    }
}
