import FileProvider
import Replica

/// Prefetches the listings of directories for a process that walks a tree, in the background lane. It stops when the
/// process does.
actor DirectoryPrefetcher {
    private let replica: Replica
    private let listings: Listings
    private var predictor: WalkPredictor
    private var running: PrefetchTasks
    private var isStopped = false
    private var lastUse = ContinuousClock.now
    private let atOnce: Int
    private static let patience = Duration.seconds(2)

    /// - Parameter atOnce: how many directories are listed ahead at once.
    init(replica: Replica, listings: Listings, atOnce: Int) {
        self.atOnce = atOnce
        predictor = WalkPredictor(smallestWindow: Self.window(atOnce: atOnce))
        self.replica = replica
        running = PrefetchTasks(replica: replica)
        self.listings = listings
    }

    /// How many directories may be prefetched at first: enough to keep the connection busy while the walker goes
    /// through what has arrived.
    static func window(atOnce: Int) -> Int { max(32, 3 * atOnce) }

    /// A process opened a directory whose listing is here.
    func listed(_ number: InodeNumber) {
        lastUse = .now
        guard let parent = try? replica.database.parent(of: number) else { return }
        predictor.listed(number, parent: parent == number ? nil : parent, children: unlistedChildren(of: number))
        pump()
    }

    /// Begins nothing any more.
    func stop() {
        isStopped = true
        predictor.stop()
    }

    /// Lists nothing at or below a directory any more, until ``allow(_:)``. Returns when nothing is under way there.
    func leaveAlone(_ directory: InodeNumber) async {
        for task in running.leaveAlone(directory) { await task.value }
    }

    func allow(_ directory: InodeNumber) { running.allow(directory) }

    private func pump() {
        guard !isStopped else { return }
        if ContinuousClock.now - lastUse > Self.patience { return predictor.stop() }
        while running.count < atOnce, let next = predictor.next() {
            if running.leavesAlone(next) { return predictor.stop() }
            let task = Task {
                try? await listings.list(next, beyond: nil, request: FileProviderRequest(reason: .lookAhead))
                self.finished(next)
            }
            running.began(task, for: next)
        }
    }

    private func finished(_ number: InodeNumber) {
        running.ended(for: number)
        predictor.foundAhead(in: number, children: unlistedChildren(of: number))
        pump()
    }

    private func unlistedChildren(of number: InodeNumber) -> [InodeNumber] {
        (try? replica.database.datalessDirectories(in: number, limit: WalkPredictor.mostStacked)) ?? []
    }
}
