import FileProvider

/// The order in which the items of a batch are placed: as they come, but a parent, or its move, may come after its child in one batch.
struct PlacingOrder {
    private var queue: [FileProviderItem]
    private var first = 0
    /// How often each item is still to be placed.
    private var unplaced: [ItemIdentifier: Int] = [:]
    /// The items that wait for their parent.
    private var children: [ItemIdentifier: [FileProviderItem]] = [:]
    private var moves: [FileProviderItem] = []
    private let items: [FileProviderItem]

    init(_ items: [FileProviderItem]) {
        (self.items, queue) = (items, items)
        for item in items { unplaced[item.itemIdentifier, default: 0] += 1 }
    }

    /// The next item that waits for none; nil when all others do.
    mutating func next() -> FileProviderItem? {
        guard first < queue.count else { return nil }
        defer { first += 1 }
        return queue[first]
    }

    /// Whether an item whose parent is not known has to wait for it. ``next()`` returns it again after the parent.
    mutating func waitsForParent(_ item: FileProviderItem) -> Bool {
        let parent = item.parentItemIdentifier
        guard parent != item.itemIdentifier, unplaced[parent] != nil else { return false }
        children[parent, default: []].append(item)
        return true
    }

    /// An item that can be placed only after another one has been moved. ``next()`` returns it again after ``retryMoves()``.
    mutating func waitForMoves(_ item: FileProviderItem) { moves.append(item) }

    var hasMoves: Bool { !moves.isEmpty }

    mutating func retryMoves() {
        (queue, first) = (moves, 0)
        moves = []
    }

    /// An item was placed, or is left as it is.
    mutating func finish(_ item: FileProviderItem) {
        let count = unplaced[item.itemIdentifier] ?? 0
        unplaced[item.itemIdentifier] = count > 1 ? count - 1 : nil
        if let released = children.removeValue(forKey: item.itemIdentifier) { queue += released }
    }

    /// The items whose parents never come, because they form a circle.
    var waiting: [FileProviderItem] {
        let waiting = Set(children.values.joined().map(\.itemIdentifier))
        return waiting.isEmpty ? [] : items.filter { waiting.contains($0.itemIdentifier) }
    }
}
