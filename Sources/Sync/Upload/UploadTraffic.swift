import FileProvider
import Replica

extension UploadTraffic.Subject {
    init(_ offer: ReadyOffer) {
        self.init(identifiers: [offer.placeholder], places: [.init(parent: offer.parent, name: offer.name)])
    }

    init(_ deletion: PendingDeletion) {
        self.init(
            identifiers: [deletion.identifier], places: [.init(parent: deletion.parent, name: deletion.name)])
    }
}

/// Keeps news from the remote apart from what is being sent there: news of the same items or names wait for the answer,
/// and news that were gathered before an answer came do not undo it.
actor UploadTraffic {
    struct Place: Hashable, Sendable {
        var parent: ItemIdentifier
        var name: String

        static func == (one: Place, other: Place) -> Bool {
            one.parent == other.parent && one.name.utf8.elementsEqual(other.name.utf8)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(parent)
            for byte in name.utf8 { hasher.combine(byte) }
        }
    }

    /// What an operation is about.
    struct Subject: Sendable {
        var identifiers: Set<ItemIdentifier>
        var places: Set<Place>
        /// The directories above, where it is and where it is to be.
        var ancestors: Set<ItemIdentifier> = []
        /// The directory that is moved or renamed, and with it the place of all below.
        var movedDirectory: ItemIdentifier?

        func overlaps(_ other: Subject) -> Bool {
            !identifiers.isDisjoint(with: other.identifiers) || !places.isDisjoint(with: other.places)
                || moves(other) || other.moves(self)
        }

        /// Whether a change is about nothing else.
        func covers(_ change: SentChange) -> Bool {
            if change.identifier != nil {
                if change.fields.isDisjoint(with: [.filename, .parentItemIdentifier]) { return true }
                if change.item.kind == .directory, movedDirectory == nil { return false }
            }
            // In the trash a name is nobody's concern.
            return change.item.isTrashed
                || places.contains(Place(parent: change.item.parentItemIdentifier, name: change.item.filename))
        }

        private func moves(_ other: Subject) -> Bool {
            movedDirectory.map(other.ancestors.contains) ?? false
        }
    }

    private var running: [SyncOperation: Subject] = [:]
    private var answered: [(at: ContinuousClock.Instant, identifier: ItemIdentifier)] = []
    private var waiters: [CheckedContinuation<Void, Never>] = []
    private static let memory = Duration.seconds(300)
    /// With so many answers the old ones are forgotten.
    private var mostAnswers = 1000

    func begin(_ operation: SyncOperation, _ subject: Subject) {
        running[operation] = subject
    }

    /// An operation is over and recorded; these items are newer here than in news that were asked for before.
    func end(_ operation: SyncOperation, touching identifiers: Set<ItemIdentifier>) {
        running[operation] = nil
        let now = ContinuousClock.now
        for identifier in identifiers { answered.append((now, identifier)) }
        if answered.count > mostAnswers {
            answered.removeAll { now - $0.at > Self.memory }
            mostAnswers = max(1000, 2 * answered.count)
        }
        let resumed = waiters
        waiters = []
        for waiter in resumed { waiter.resume() }
    }

    /// Waits until nothing is under way that concerns these items or their names.
    ///
    /// - Returns: of which items an answer has come since a moment: news that are older do not count.
    func settle(
        _ items: [FileProviderItem], deleted: [ItemIdentifier] = [], askedAt start: ContinuousClock.Instant
    ) async -> Set<ItemIdentifier> {
        let subject = Subject(
            identifiers: Set(items.map(\.itemIdentifier)).union(deleted),
            places: Set(items.map { Place(parent: $0.parentItemIdentifier, name: $0.filename) }))
        while running.values.contains(where: { $0.overlaps(subject) }) {
            await withCheckedContinuation { waiters.append($0) }
        }
        return answered.reduce(into: []) { if $1.at >= start { $0.insert($1.identifier) } }
    }
}
