import FileProvider
import Replica
import Synchronization

/// Prefetches the next small files of a directory that is being read, in the background lane. It stops when a fetch fails.
actor FilePrefetcher {
    private let replica: Replica
    private let downloads: Downloads
    private let atOnce: Int
    private var mostBytes = ReadPredictor.mostBytes
    private let accounting: (any FetchAccounting)?
    /// For whom files are fetched ahead.
    private var reader: Int32?
    private var predictor = ReadPredictor()
    private var waiting: [InodeNumber] = []
    private var running: PrefetchTasks
    private var isStopped = false
    /// The prefetched files, read by the threads that open files.
    private nonisolated let ahead = Mutex<Set<InodeNumber>>([])

    /// - Parameters:
    ///   - atOnce: how many files are fetched ahead at once.
    ///   - cacheLimit: how much content may be here; a small part of it may come unasked.
    ///   - accounting: told what is fetched ahead of which process.
    init(
        replica: Replica, downloads: Downloads, atOnce: Int, cacheLimit: Int64?, accounting: (any FetchAccounting)?
    ) {
        self.accounting = accounting
        self.replica = replica
        running = PrefetchTasks(replica: replica)
        self.downloads = downloads
        self.atOnce = max(1, atOnce)
        mostBytes = Self.mostBytes(within: cacheLimit)
    }

    /// Another limit holds from now on.
    func keep(to cacheLimit: Int64?) {
        mostBytes = Self.mostBytes(within: cacheLimit)
    }

    private static func mostBytes(within cacheLimit: Int64?) -> Int64 {
        min(ReadPredictor.mostBytes, cacheLimit.map { $0 / 16 } ?? .max)
    }

    /// A process reads a file whose content is not here. Returns at once; from any thread.
    nonisolated func fileIsMissed(_ number: InodeNumber, by process: Int32?) {
        Task { await self.miss(number, by: process) }
    }

    /// A process opened a file: it may be one that was fetched ahead. Returns at once; from any thread.
    nonisolated func fileWasOpened(_ number: InodeNumber) {
        guard ahead.withLock({ $0.contains(number) }) else { return }
        Task { await self.read(number) }
    }

    /// Begins nothing any more.
    func stop() {
        isStopped = true
        waiting = []
        predictor = ReadPredictor()
        publish()
    }

    /// Fetches nothing at or below an item any more, until ``allow(_:)``. Returns when nothing is under way there.
    func leaveAlone(_ number: InodeNumber) async {
        for task in running.leaveAlone(number) { await task.value }
    }

    func allow(_ number: InodeNumber) { running.allow(number) }

    private func publish() {
        let numbers = predictor.ahead
        ahead.withLock { $0 = numbers }
    }

    private func miss(_ number: InodeNumber, by process: Int32?) {
        reader = process
        read(number)
    }

    private func read(_ number: InodeNumber) {
        if let reader, accounting?.admits(reader) == false { return }
        guard !isStopped,
            let place = try? replica.database.siblings(
                after: number, limit: ReadPredictor.largestWindow, around: ReadPredictor.largestUnorderedWindow)
        else { return }
        waiting += predictor.read(
            number, in: place.directory,
            following: ReadPredictor.Following(
                byName: place.byName, byListing: place.byListing, around: place.around), mostBytes: mostBytes)
        // Files that the reader has reached, or will not reach any more.
        waiting.removeAll { !predictor.isAhead($0) }
        publish()
        pump()
    }

    private func pump() {
        while running.count < atOnce, !waiting.isEmpty {
            let next = waiting.removeFirst()
            if running.leavesAlone(next) {
                predictor.failed(next)
                publish()
                continue
            }
            let task = Task {
                let isHere = await self.fetch(next)
                self.finished(next, isHere: isHere)
            }
            running.began(task, for: next)
        }
    }

    private func fetch(_ number: InodeNumber) async -> Bool {
        let reader = reader
        if let reader, accounting?.admits(reader) == false { return false }
        let missing = (try? replica.database.inode(number)).map { $0.size.saturatingSubtract($0.localBytes) } ?? 0
        do throws(FileProviderError) {
            try await downloads.provide(
                number, version: nil, range: nil, request: FileProviderRequest(reason: .lookAhead))
            if let reader { accounting?.charge(missing, to: reader) }
            return true
        } catch {
            return false
        }
    }

    private func finished(_ number: InodeNumber, isHere: Bool) {
        running.ended(for: number)
        if !isHere {
            // The others would probably fail, too.
            waiting = []
            predictor.failed(number)
            publish()
        }
        pump()
    }
}
