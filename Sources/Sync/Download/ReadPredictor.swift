import Replica

/// Recognises that the files of a directory are read one after the other, and says which come next: pure, told of every
/// file that is read.
///
/// Programs go through a directory in the order of its names (a shell's pattern) or in that of its listing (`grep -r`,
/// `cp -r`).
struct ReadPredictor: Sendable {
    /// The files of a directory that follow one, by each order, the nearest first.
    struct Following: Sendable {
        var byName: [SiblingFile]
        var byListing: [SiblingFile]
    }

    private var directory: InodeNumber?
    private var last: InodeNumber?
    private var expectedByName: Set<InodeNumber> = []
    private var expectedByListing: Set<InodeNumber> = []
    private var evidenceByName = 0
    private var evidenceByListing = 0
    private var used = 0
    /// Prefetched files that the reader has not reached yet.
    private(set) var ahead: Set<InodeNumber> = []

    static let neededEvidence = 2
    /// A reader may leave out a few.
    static let tolerance = 3
    static let smallestWindow = 8
    static let largestWindow = 96
    static let largestFile: Int64 = 256 << 10
    static let mostBytes: Int64 = 8 << 20

    /// How many files may be ahead of the reader: more the more of them it has used.
    private var window: Int { min(Self.largestWindow, max(Self.smallestWindow, 2 * used)) }

    /// A process reads a file.
    ///
    /// - Parameters:
    ///   - following: what comes after it in its directory; at least ``largestWindow`` where there are as many.
    ///   - mostBytes: how much may be fetched ahead.
    /// - Returns: the files to fetch ahead now.
    mutating func read(
        _ file: InodeNumber, in directory: InodeNumber, following: Following, mostBytes: Int64 = Self.mostBytes
    ) -> [InodeNumber] {
        if ahead.remove(file) != nil { used += 1 }
        if directory != self.directory {
            self = ReadPredictor()
            self.directory = directory
        } else if file != last {
            evidenceByName = expectedByName.contains(file) ? evidenceByName + 1 : 0
            evidenceByListing = expectedByListing.contains(file) ? evidenceByListing + 1 : 0
        }
        last = file
        // One that leaves most of what was fetched for it is followed with less to remember.
        if ahead.count > 4 * Self.largestWindow { ahead = [] }
        expectedByName = Set(following.byName.prefix(Self.tolerance).map(\.number))
        expectedByListing = Set(following.byListing.prefix(Self.tolerance).map(\.number))
        guard max(evidenceByName, evidenceByListing) >= Self.neededEvidence else { return [] }
        let next = evidenceByListing >= evidenceByName ? following.byListing : following.byName
        var bytes: Int64 = 0
        var wanted: [InodeNumber] = []
        for sibling in next.prefix(window) where sibling.isDataless && sibling.size <= Self.largestFile {
            bytes += sibling.size
            guard bytes <= mostBytes else { break }
            if ahead.insert(sibling.number).inserted { wanted.append(sibling.number) }
        }
        return wanted
    }

    /// A file could not be fetched ahead.
    mutating func failed(_ file: InodeNumber) {
        ahead.remove(file)
    }
}
