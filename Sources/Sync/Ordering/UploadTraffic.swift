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
    private var waiters: [CheckedContinuation<Void, Never>] = []
    private let answers: RecordedAnswers

    init(answers: RecordedAnswers) {
        self.answers = answers
    }

    func begin(_ operation: SyncOperation, _ subject: Subject) {
        running[operation] = subject
    }

    /// An operation is over and recorded; these items are newer here than in news that were asked for before.
    func end(_ operation: SyncOperation, touching identifiers: Set<ItemIdentifier>) {
        running[operation] = nil
        for identifier in identifiers { answers.note(identifier) }
        let resumed = waiters
        waiters = []
        for waiter in resumed { waiter.resume() }
    }

    /// Waits until nothing is under way that concerns these items or their names.
    ///
    /// - Returns: of which of them an answer has come since a moment: news that are older do not count. Whoever commits
    ///   the others has to ask once more then.
    func settle(
        _ items: [FileProviderItem], deleted: [ItemIdentifier] = [], askedAt moment: RecordedAnswers.Moment
    ) async -> Set<ItemIdentifier> {
        let identifiers = Set(items.map(\.itemIdentifier)).union(deleted)
        let subject = Subject(
            identifiers: identifiers,
            places: Set(items.map { Place(parent: $0.parentItemIdentifier, name: $0.filename) }))
        while running.values.contains(where: { $0.overlaps(subject) }) {
            await withCheckedContinuation { waiters.append($0) }
        }
        return identifiers.filter { answers.isNewer($0, than: moment) }
    }
}
