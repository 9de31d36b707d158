import Replica

/// Recognises a recursive walk, and says which directories it will list next: pure, told of every listing.
///
/// A walk is a listing of a directory whose parent was listed shortly before, twice in a row. What is ahead is a stack: its
/// top is where the walker comes next, depth first. From its bottom comes every other one, so that what lies deep behind a
/// directory that the walker reaches late is not found only then, one level after the other.
struct WalkPredictor: Sendable {
    private var recent: [InodeNumber] = []
    /// Where the walker was.
    private var seen: Set<InodeNumber> = []
    private var evidence = 0
    private var stack: [InodeNumber] = []
    private var isFromBottom = false
    /// Of what is ahead, what lies far from the walker.
    private var far: Set<InodeNumber> = []
    /// Prefetched directories that the walker has not reached yet.
    private(set) var ahead: Set<InodeNumber> = []
    private var used = 0
    /// How often the walker came where nothing had been listed ahead.
    private var missed = 0

    static let memory = 64
    static let neededEvidence = 2
    private let smallestWindow: Int
    static let largestWindow = 512
    /// More directories that are to be listed are not kept.
    static let mostStacked = 8 * largestWindow
    private static let mostSeen = 1 << 16

    /// - Parameter smallestWindow: how many directories may be ahead of a walker of whom nothing else is known.
    init(smallestWindow: Int = 32) {
        self.smallestWindow = smallestWindow
    }

    /// Whether a process seems to walk the tree.
    var isWalking: Bool { evidence >= Self.neededEvidence }

    /// How many directories may be ahead of the walker: more the more of them it has used, and twice as many each time
    /// that it had to wait.
    private var window: Int {
        min(Self.largestWindow, max(smallestWindow << min(missed, 16), 2 * used))
    }

    /// A process listed a directory.
    ///
    /// - Parameter children: its subdirectories that are not listed yet, in the order of the listing.
    mutating func listed(_ directory: InodeNumber, parent: InodeNumber?, children: [InodeNumber]) {
        let wasAhead = ahead.remove(directory) != nil
        far.remove(directory)
        // Back from a deep tree it comes to what was found long ago, and had no turn yet.
        let wasExpected = isWalking && stack.contains(directory)
        stack.removeAll { $0 == directory }
        if !wasAhead, isWalking, seen.contains(directory) {
            // On its way back up, or for the rest of a listing.
            push(children)
            return
        }
        if seen.count >= Self.mostSeen { seen = [] }
        seen.insert(directory)
        if wasAhead {
            used += 1
        } else if wasExpected || parent.map(recent.contains) == true {
            // One listing that comes in parts is no walk.
            if recent.last != directory {
                if isWalking { missed += 1 }
                evidence += 1
            }
        } else {
            // Elsewhere: whatever was expected is not what is happening.
            evidence = 0
            stack = []
            ahead = []
            far = []
            seen = [directory]
            used = 0
            missed = 0
        }
        recent.append(directory)
        if recent.count > Self.memory { recent.removeFirst() }
        push(children)
    }

    /// A directory was listed ahead: its subdirectories come next after it.
    mutating func foundAhead(in directory: InodeNumber, children: [InodeNumber]) {
        if !far.contains(directory) { return push(children) }
        let known = Set(stack)
        stack.insert(contentsOf: children.reversed().filter { !ahead.contains($0) && !known.contains($0) }, at: 0)
        bound()
    }

    /// The next directory to list ahead; nil when there is none or enough is ahead.
    mutating func next() -> InodeNumber? {
        guard isWalking, ahead.count < window, !stack.isEmpty else { return nil }
        // In a large tree the walker reaches far directories late, so half of the places are for near ones.
        let isFar = isFromBottom && far.count < window / 2
        let next = isFar ? stack.removeFirst() : stack.removeLast()
        isFromBottom.toggle()
        ahead.insert(next)
        if isFar { far.insert(next) }
        return next
    }

    /// The walker does not come any more.
    mutating func stop() {
        self = WalkPredictor(smallestWindow: smallestWindow)
    }

    private mutating func push(_ children: [InodeNumber]) {
        let new = children.reversed().filter { !ahead.contains($0) }
        // The walker has come nearer to those that were known before.
        let known = Set(new)
        stack.removeAll(where: known.contains)
        stack += new
        bound()
    }

    private mutating func bound() {
        if stack.count > Self.mostStacked { stack.removeFirst(stack.count - Self.mostStacked) }
    }
}
