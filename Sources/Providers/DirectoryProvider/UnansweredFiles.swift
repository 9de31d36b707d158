import FileProvider

/// The files that a ``Folder`` has created and the system may not know yet, each until its deadline.
struct UnansweredFiles {
    struct File {
        var identifier: ItemIdentifier
        var deadline: ContinuousClock.Instant
    }

    private var files: [ItemIdentifier: [ChangeLog.Place: File]] = [:]
    /// The places in the order of their deadlines, from `first` on, so that each is examined once.
    private var order: [(place: ChangeLog.Place, deadline: ContinuousClock.Instant)] = []
    private var first = 0

    /// Adds a file, and removes those whose deadline has passed.
    mutating func insert(
        _ identifier: ItemIdentifier, at place: ChangeLog.Place, until deadline: ContinuousClock.Instant
    ) {
        let now = ContinuousClock.now
        while first < order.count, order[first].deadline <= now {
            let (place, deadline) = order[first]
            if files[place.directory]?[place]?.deadline == deadline { remove(place) }
            first += 1
        }
        if first > order.count / 2 {
            order.removeFirst(first)
            first = 0
        }
        files[place.directory, default: [:]][place] = File(identifier: identifier, deadline: deadline)
        order.append((place, deadline))
    }

    /// Removes the file at a place.
    ///
    /// - Parameter identifier: removes only this file; nil for any.
    mutating func remove(_ place: ChangeLog.Place, ifStill identifier: ItemIdentifier? = nil) {
        guard let file = files[place.directory]?[place], identifier == nil || identifier == file.identifier else {
            return
        }
        files[place.directory]?[place] = nil
        if files[place.directory]?.isEmpty == true { files[place.directory] = nil }
    }

    /// The files in a directory: all of them, or the one at a place.
    func files(in directory: ItemIdentifier, at place: ChangeLog.Place? = nil) -> [(place: ChangeLog.Place, file: File)]
    {
        guard let place else { return files[directory]?.map { ($0.key, $0.value) } ?? [] }
        return files[directory]?[place].map { [(place, $0)] } ?? []
    }
}
