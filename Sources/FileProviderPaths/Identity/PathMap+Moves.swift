import FileProvider

extension PathMap {
    /// An item is elsewhere than the system knows.
    struct Move {
        /// Where the system knows the item.
        var from: RemotePath
        var to: Place
        /// When the entry is dropped although the system has not heard of it. Nil for a move made here: until its call
        /// succeeds, which may take any number of attempts, only this entry leads to the item.
        var deadline: ContinuousClock.Instant?
    }

    /// Moves by item, by where the system knows the item, and by where it is: one listing may show thousands.
    struct Moves {
        private(set) var byItem: [ItemIdentifier: Move] = [:]
        private var origins: [RemotePath: [ItemIdentifier]] = [:]
        private var targets: [Place: [ItemIdentifier]] = [:]
        /// How many have a deadline.
        private var withDeadline = 0
        private static let mostWithDeadline = 4096

        func items(at place: Place) -> [(item: ItemIdentifier, move: Move)] {
            targets[place, default: []].compactMap { item in byItem[item].map { (item, $0) } }
        }

        /// The deepest directory above a path that was moved.
        func deepest(
            above path: RemotePath, besides others: Set<ItemIdentifier>
        ) -> (item: ItemIdentifier, move: Move)? {
            var path = path
            while !path.names.isEmpty {
                path = path.parent
                for item in origins[path, default: []] where !others.contains(item) {
                    if let move = byItem[item] { return (item, move) }
                }
            }
            return nil
        }

        mutating func insert(_ move: Move, of item: ItemIdentifier) {
            if withDeadline >= Self.mostWithDeadline {
                for (other, old) in byItem where old.deadline != nil { remove(other) }
            }
            remove(item)
            byItem[item] = move
            origins[move.from, default: []].append(item)
            targets[move.to, default: []].append(item)
            if move.deadline != nil { withDeadline += 1 }
        }

        mutating func remove(_ item: ItemIdentifier) {
            guard let move = byItem.removeValue(forKey: item) else { return }
            Self.remove(item, from: &origins, move.from)
            Self.remove(item, from: &targets, move.to)
            if move.deadline != nil { withDeadline -= 1 }
        }

        private static func remove<Key: Hashable>(
            _ item: ItemIdentifier, from items: inout [Key: [ItemIdentifier]], _ key: Key
        ) {
            items[key]?.removeAll { $0 == item }
            if items[key]?.isEmpty == true { items[key] = nil }
        }
    }
}
