import Replica

/// Recognises that the small files of a directory are read one after the other, and says which to fetch next: pure, told of
/// every file that is read.
///
/// Programs go through a directory in the order of its names (a shell's pattern), in that of its listing (`grep -r`, `cp -r`), or
/// in one of their own (a compiler, a viewer). In an order that is not known, any file of the directory may be the next one: the
/// number of files that are fetched ahead doubles with each one that is read.
struct ReadPredictor: Sendable {
    /// The files of a directory that follow one, the nearest first.
    struct Following: Sendable {
        var byName: [SiblingFile]
        var byListing: [SiblingFile]
        /// By the listing, and from its start after its end.
        var around: [SiblingFile]
    }

    /// The reading in one directory.
    private struct Run {
        var last: InodeNumber?
        var lastRead: ContinuousClock.Instant
        var expectedByName: Set<InodeNumber> = []
        var expectedByListing: Set<InodeNumber> = []
        var evidenceByName = 0
        var evidenceByListing = 0
        /// How many of its files were read, each soon after the one before.
        var length: Int
        var fetched = 0
        var used = 0
    }

    private var directory: InodeNumber?
    private var runs: [InodeNumber: Run] = [:]
    /// Whether the reader has read most of what was fetched for it in the directory before.
    private var isConfident = false
    private var sizes: [InodeNumber: Int64] = [:]

    static let neededEvidence = 2
    /// So many files of a directory in any order are one reader.
    static let neededLength = 4
    /// A reader may leave out a few.
    static let tolerance = 3
    static let smallestWindow = 8
    static let largestWindow = 96
    /// Where the order is not known.
    static let largestUnorderedWindow = 256
    static let largestFile: Int64 = 256 << 10
    static let mostBytes: Int64 = 8 << 20
    /// A file that is read later than that after the one before begins another run.
    static let longestPause: Duration = .seconds(2)
    private static let mostRuns = 32

    /// Prefetched files that the reader has not reached yet.
    var ahead: Set<InodeNumber> { Set(sizes.keys) }

    func isAhead(_ file: InodeNumber) -> Bool { sizes[file] != nil }

    /// A process reads a file.
    ///
    /// - Parameters:
    ///   - following: what comes after it in its directory; at least ``largestWindow`` by each order, and
    ///     ``largestUnorderedWindow`` around it, where there are as many.
    ///   - mostBytes: how much may be fetched ahead.
    /// - Returns: the files to fetch ahead now.
    mutating func read(
        _ file: InodeNumber, in directory: InodeNumber, following: Following, mostBytes: Int64 = Self.mostBytes,
        at now: ContinuousClock.Instant = .now
    ) -> [InodeNumber] {
        if directory != self.directory { enter(directory) }
        var run = runs[directory] ?? Run(lastRead: now, length: isConfident ? Self.neededLength - 1 : 0)
        if sizes.removeValue(forKey: file) != nil { run.used += 1 }
        if file != run.last {
            run.evidenceByName = run.expectedByName.contains(file) ? run.evidenceByName + 1 : 0
            run.evidenceByListing = run.expectedByListing.contains(file) ? run.evidenceByListing + 1 : 0
            run.length = run.lastRead.duration(to: now) > Self.longestPause ? 1 : run.length + 1
        }
        (run.last, run.lastRead) = (file, now)
        // One that leaves most of what was fetched for it is followed with less to remember.
        if sizes.count > 4 * Self.largestWindow { sizes = [:] }
        run.expectedByName = Set(following.byName.prefix(Self.tolerance).map(\.number))
        run.expectedByListing = Set(following.byListing.prefix(Self.tolerance).map(\.number))
        let wanted = wanted(run, following, mostBytes)
        run.fetched += wanted.count
        runs[directory] = run
        return wanted
    }

    /// A file could not be fetched ahead.
    mutating func failed(_ file: InodeNumber) {
        sizes[file] = nil
    }

    /// The reader has left the last directory.
    private mutating func enter(_ directory: InodeNumber) {
        if let last = self.directory.flatMap({ runs[$0] }), last.fetched > 0 {
            isConfident = 2 * last.used >= last.fetched
        }
        sizes = [:]
        self.directory = directory
        guard runs[directory] == nil, runs.count >= Self.mostRuns else { return }
        if let oldest = runs.min(by: { $0.value.lastRead < $1.value.lastRead }) { runs[oldest.key] = nil }
    }

    private mutating func wanted(_ run: Run, _ following: Following, _ mostBytes: Int64) -> [InodeNumber] {
        if max(run.evidenceByName, run.evidenceByListing) >= Self.neededEvidence {
            let next = run.evidenceByListing >= run.evidenceByName ? following.byListing : following.byName
            // How many files may be ahead of the reader: more the more of them it has used.
            let window = min(Self.largestWindow, max(Self.smallestWindow, 2 * run.used))
            return take(next.prefix(window), mostBytes)
        }
        guard run.length >= Self.neededLength else { return [] }
        let doublings = min(run.length - Self.neededLength, 10)
        let window = min(Self.largestUnorderedWindow, Self.smallestWindow << doublings)
        // What is fetched and was not read yet counts: a reader of a few files of many leaves no more than that.
        let free = max(0, window - sizes.count)
        let bytes = sizes.values.reduce(0, +)
        return take(following.around[...], mostBytes - bytes, most: free)
    }

    private mutating func take(
        _ files: ArraySlice<SiblingFile>, _ mostBytes: Int64, most: Int = .max
    ) -> [InodeNumber] {
        var bytes: Int64 = 0
        var wanted: [InodeNumber] = []
        for file in files where file.isDataless && file.size <= Self.largestFile {
            guard wanted.count < most else { break }
            bytes += file.size
            guard bytes <= mostBytes else { break }
            guard sizes[file.number] == nil else { continue }
            sizes[file.number] = file.size
            wanted.append(file.number)
        }
        return wanted
    }
}
