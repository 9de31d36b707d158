import FileProvider
import Replica

/// Lists directories ahead of a process that walks a tree. Stops when the process does, and never takes a place from a
/// listing that somebody waits for.
actor LookAhead {
    private let replica: Replica
    private let listings: Listings
    private var predictor = WalkPredictor()
    private var running: [InodeNumber: Task<Void, Never>] = [:]
    /// What is being evicted: nothing at or below is listed ahead.
    private var leftAlone: [InodeNumber] = []
    private var isStopped = false
    private var lastUse = ContinuousClock.now
    private let atOnce: Int
    private static let patience = Duration.seconds(2)

    /// - Parameter atOnce: how many directories are listed ahead at once.
    init(replica: Replica, listings: Listings, atOnce: Int) {
        self.atOnce = atOnce
        self.replica = replica
        self.listings = listings
    }

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
        leftAlone.append(directory)
        let ending = running.filter { isBelow($0.key, directory) }.map(\.value)
        for task in ending { task.cancel() }
        for task in ending { await task.value }
    }

    func allow(_ directory: InodeNumber) {
        if let index = leftAlone.firstIndex(of: directory) { leftAlone.remove(at: index) }
    }

    private func isBelow(_ number: InodeNumber, _ directory: InodeNumber) -> Bool {
        (try? replica.database.isBelow(number, directory)) ?? true
    }

    private func pump() {
        guard !isStopped else { return }
        if ContinuousClock.now - lastUse > Self.patience { return predictor.stop() }
        while running.count < atOnce, let next = predictor.next() {
            if leftAlone.contains(where: { isBelow(next, $0) }) { return predictor.stop() }
            running[next] = Task {
                try? await listings.list(next, beyond: nil, request: FileProviderRequest(reason: .lookAhead))
                self.finished(next)
            }
        }
    }

    private func finished(_ number: InodeNumber) {
        running[number] = nil
        predictor.foundAhead(children: unlistedChildren(of: number))
        pump()
    }

    private func unlistedChildren(of number: InodeNumber) -> [InodeNumber] {
        (try? replica.database.datalessDirectories(in: number)) ?? []
    }
}
