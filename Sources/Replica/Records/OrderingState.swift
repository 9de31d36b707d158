import FileProvider

/// The items, and the names in directories, that an operation or an observation touches.
package struct Footprint: Hashable, Sendable {
    package struct Place: Hashable, Sendable {
        package var parent: ItemIdentifier
        package var name: String

        package init(parent: ItemIdentifier, name: String) {
            self.parent = parent
            self.name = name
        }

        /// By bytes: Swift's own comparison takes two normal forms for one name.
        package static func == (one: Place, other: Place) -> Bool {
            one.parent == other.parent && one.name.utf8.elementsEqual(other.name.utf8)
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(parent)
            for byte in name.utf8 { hasher.combine(byte) }
        }
    }

    package var identifiers: Set<ItemIdentifier>
    package var places: Set<Place>
    /// The directories above, both where the item is and where it is to be.
    package var ancestors: Set<ItemIdentifier> = []
    /// The directory that is moved, renamed or deleted, and with it the place of everything below.
    package var movedDirectory: ItemIdentifier?

    package init(identifiers: Set<ItemIdentifier> = [], places: Set<Place> = []) {
        self.identifiers = identifiers
        self.places = places
    }

    package func overlaps(_ other: Footprint) -> Bool {
        !identifiers.isDisjoint(with: other.identifiers) || !places.isDisjoint(with: other.places)
            || moves(other) || other.moves(self)
    }

    private func moves(_ other: Footprint) -> Bool {
        movedDirectory.map(other.ancestors.contains) ?? false
    }
}

/// Orders what the remote is observed to have against the operations that change it. A logical clock ticks at each event.
///
/// - An observation (a page, a batch of changes, a lookup) carries the tick at which it was requested. The remote may have
///   made it at any moment after that.
/// - An operation carries the tick at which it was sent. Until it is answered the remote may be in either state, so an
///   observation of the same items or names waits for the answer, for a moment, and then says nothing of them.
/// - An acknowledgement of an item makes every observation of it stale that was requested before.
/// - A report of an item, from the provider's changes, likewise makes a listing stale that was requested before.
///
/// This is a value without locks and queues, so that a test can run it against a model. ``RemoteOrdering`` shares one.
package struct OrderingState: Sendable {
    package typealias Tick = UInt64
    package typealias OperationID = UInt64

    package enum Verdict: Hashable, Sendable {
        /// No acknowledgement is newer than the observation.
        case fresh
        /// These items were acknowledged after the observation was requested: it says nothing of them.
        case stale(Set<ItemIdentifier>)
        /// An operation on the same items or names has not been answered.
        case wait(for: OperationID)
    }

    private struct Operation {
        var footprint: Footprint
        /// Nil before it is sent, and after it was answered.
        var sentAt: Tick?
    }

    private var clock: Tick = 0
    private var operations: [OperationID: Operation] = [:]
    /// Observations that were requested and are not recorded yet.
    private var outstanding: Set<Tick> = []
    /// Only as long as an observation is outstanding that was requested before: see ``endObservation(_:)``.
    private(set) var acknowledged: [ItemIdentifier: Tick] = [:]
    private(set) var reported: [ItemIdentifier: Tick] = [:]
    /// Items that a listing did not show: false while they are looked up, true once the remote does not have them.
    private var missing: [ItemIdentifier: Bool] = [:]

    package init() {}

    // MARK: - Operations

    /// Whether an operation may not start, because another has claimed one of its items or names.
    package func isClaimed(_ footprint: Footprint) -> Bool {
        operations.values.contains { $0.footprint.overlaps(footprint) }
    }

    /// Claims what an operation touches; nil where another has.
    package mutating func claim(_ footprint: Footprint) -> OperationID? {
        guard !isClaimed(footprint) else { return nil }
        clock += 1
        operations[clock] = Operation(footprint: footprint)
        return clock
    }

    /// Claims something else for an operation that was not sent yet.
    ///
    /// - Returns: false where another operation has claimed that; then nothing changes.
    package mutating func claim(_ footprint: Footprint, for id: OperationID) -> Bool {
        guard !operations.contains(where: { $0.key != id && $0.value.footprint.overlaps(footprint) }) else {
            return false
        }
        operations[id]?.footprint = footprint
        return true
    }

    /// The operation is sent: from now on the remote may apply it.
    package mutating func send(_ id: OperationID) {
        clock += 1
        operations[id]?.sentAt = clock
    }

    /// The operation was answered, and the answer is recorded. Its claim remains until ``release(_:)``.
    package mutating func answer(_ id: OperationID, of identifiers: Set<ItemIdentifier>) {
        for identifier in identifiers { acknowledge(identifier) }
        operations[id]?.sentAt = nil
    }

    package mutating func release(_ id: OperationID) {
        operations[id] = nil
    }

    package func isInFlight(_ id: OperationID) -> Bool { operations[id]?.sentAt != nil }

    /// Whether an operation on some of these items or names has not been answered.
    package func isInFlight(_ footprint: Footprint) -> Bool {
        operations.values.contains { $0.sentAt != nil && $0.footprint.overlaps(footprint) }
    }

    /// The answer to a change of an item is being recorded.
    package mutating func acknowledge(_ identifier: ItemIdentifier) {
        // Nothing is requested that could be older.
        guard !outstanding.isEmpty else { return }
        clock += 1
        acknowledged[identifier] = clock
    }

    // MARK: - Observations

    /// An observation is about to be requested.
    package mutating func beginObservation() -> Tick {
        clock += 1
        outstanding.insert(clock)
        return clock
    }

    /// An observation is recorded, or was given up. With the oldest one the acknowledgements and reports are removed that
    /// no outstanding observation precedes, so that memory is bounded although listings overlap without end.
    package mutating func endObservation(_ tick: Tick) {
        guard outstanding.remove(tick) != nil, !acknowledged.isEmpty || !reported.isEmpty else { return }
        let oldest = outstanding.min() ?? clock
        guard oldest > tick else { return }
        acknowledged = acknowledged.filter { $0.value > oldest }
        reported = reported.filter { $0.value > oldest }
    }

    /// The provider's changes say something of these items, and are about to be recorded.
    package mutating func report(_ identifiers: some Sequence<ItemIdentifier>) {
        guard !outstanding.isEmpty else { return }
        clock += 1
        for identifier in identifiers { reported[identifier] = clock }
    }

    /// Whether an observation is older than what is known of an item.
    ///
    /// - Parameter isListing: whether the provider's changes are newer than it, too.
    package func isStale(_ identifier: ItemIdentifier, observedAt tick: Tick, isListing: Bool = false) -> Bool {
        (acknowledged[identifier] ?? 0) > tick || isListing && (reported[identifier] ?? 0) > tick
    }

    /// Whether anything newer than a listing may be known: false spares the question for each of its items.
    package func hasNews(since tick: Tick) -> Bool {
        acknowledged.contains { $0.value > tick } || reported.contains { $0.value > tick }
    }

    /// Whether an observation is still valid.
    package func verdict(on footprint: Footprint, observedAt tick: Tick) -> Verdict {
        if let (id, _) = operations.first(where: { $0.value.sentAt != nil && $0.value.footprint.overlaps(footprint) }) {
            return .wait(for: id)
        }
        let stale = footprint.identifiers.filter { isStale($0, observedAt: tick) }
        return stale.isEmpty ? .fresh : .stale(stale)
    }

    // MARK: - Missing items

    /// A listing did not show an item, and it is about to be looked up.
    package mutating func beginLookup(of identifier: ItemIdentifier) {
        if missing[identifier] == nil { missing[identifier] = false }
    }

    /// The remote does not have an item that was looked up.
    ///
    /// - Returns: whether it is missing: no listing has shown it since the lookup began.
    package mutating func lookupFailed(of identifier: ItemIdentifier) -> Bool {
        guard missing[identifier] != nil else { return false }
        missing[identifier] = true
        return true
    }

    /// The remote has these items: a listing or a lookup has shown them.
    package mutating func found(_ identifiers: some Sequence<ItemIdentifier>) {
        guard !missing.isEmpty else { return }
        for identifier in identifiers { missing[identifier] = nil }
    }

    /// The items that the remote does not have any more.
    package var confirmedMissing: Set<ItemIdentifier> { Set(missing.filter(\.value).keys) }

    /// The items that the remote does not have any more; each is returned once.
    package mutating func takeMissing() -> Set<ItemIdentifier> {
        let confirmed = confirmedMissing
        for identifier in confirmed { missing[identifier] = nil }
        return confirmed
    }
}
