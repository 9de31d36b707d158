import FileProvider
import Replica

/// Sees to it that what lies in the trash is here, so that it is there offline: files whole, of directories the
/// listing.
actor TrashMaterializer {
    private let replica: Replica
    private let open: any OpenInodes
    private let commits: Commits
    private let connection: Connection
    private let listings: Listings
    private let downloads: Downloads
    private let request = FileProviderRequest(reason: .synchronization)
    /// How often each failed, so that what does not come is not asked for over and over.
    private var failures: [InodeNumber: Int] = [:]
    private var loop: Task<Void, Never>?
    private nonisolated let signal: WakeSignal

    private static let mostFailures = 5
    /// How long after it was written what is said of no trashed item may go.
    private static let oldEnough = Duration.seconds(60)
    private var tidiedAt: ContinuousClock.Instant?
    private static let shortestPause = Duration.milliseconds(50)

    init(
        replica: Replica, open: any OpenInodes, commits: Commits, connection: Connection, listings: Listings,
        downloads: Downloads, signal: WakeSignal
    ) {
        self.replica = replica
        self.open = open
        self.commits = commits
        self.connection = connection
        self.listings = listings
        self.downloads = downloads
        self.signal = signal
    }

    /// Something may have come into the trash. Returns at once; from any thread.
    nonisolated func wake() {
        signal.wake()
    }

    func start() {
        guard loop == nil else { return }
        loop = Task { [signal] in
            for await _ in signal.wakes {
                self.tidyNowAndThen()
                await self.fetch()
                try? await Task.sleep(for: Self.shortestPause)
            }
        }
        wake()
    }

    func stop() {
        signal.finish()
        loop?.cancel()
    }

    private func tidyNowAndThen() {
        if let tidiedAt, ContinuousClock.now - tidiedAt < Self.oldEnough { return }
        tidiedAt = .now
        tidy()
    }

    private func tidy() {
        let moment = Replica.now.advanced(by: .zero - Self.oldEnough)
        guard let (_, effects) = try? replica.change(open: open, { try $0.removeOrphanedInformation(before: moment) })
        else { return }
        commits.publish(effects)
    }

    private func fetch() async {
        guard let waiting = try? replica.database.incompleteTrashedItems() else { return }
        for inode in waiting where failures[inode.number, default: 0] < Self.mostFailures {
            guard !Task.isCancelled, connection.state == .online else { return }
            do throws(FileProviderError) {
                if inode.kind == .directory {
                    try await listings.list(inode.number, beyond: nil, request: request)
                } else {
                    try await downloads.provide(inode.number, version: nil, range: nil, request: request)
                    await downloads.settle(inode.number)
                }
                failures[inode.number] = nil
            } catch {
                if error.code.reaction == .latchDomain { return }
                failures[inode.number, default: 0] += 1
            }
        }
    }
}
