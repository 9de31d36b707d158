import FileProvider
import Replica

extension Footprint {
    init(_ offer: ReadyOffer) {
        self.init(identifiers: [offer.placeholder], places: [Place(parent: offer.parent, name: offer.name)])
    }

    init(_ deletion: PendingDeletion) {
        self.init(identifiers: [deletion.identifier], places: [Place(parent: deletion.parent, name: deletion.name)])
        // A move into it that is in flight ends first: what it brings is deleted before the directory.
        if deletion.kind == .directory { movedDirectory = deletion.identifier }
    }

    /// Whether a change touches nothing else.
    func covers(_ change: SentChange) -> Bool {
        if change.identifier != nil {
            if change.fields.isDisjoint(with: [.filename, .parentItemIdentifier]) { return true }
            if change.item.kind == .directory, movedDirectory == nil { return false }
        }
        // In the trash several items may have one name.
        return change.item.isTrashed
            || places.contains(Place(parent: change.item.parentItemIdentifier, name: change.item.filename))
    }
}
