import FileProvider
import Synchronization

/// Where items are on the remote that are read although they have no row here: another item has their name, or they are compared
/// with what was sent before they are taken in. A provider that knows its items by path asks for it.
package final class UnplacedItems: Sendable {
    struct Place {
        var parent: ItemIdentifier
        var name: String
        fileprivate var uses: Int
    }

    private let places = Mutex<[ItemIdentifier: Place]>([:])

    /// An item is about to be read, until ``remove(_:)``.
    package func add(_ item: FileProviderItem) {
        places.withLock { places in
            let uses = places[item.itemIdentifier]?.uses ?? 0
            places[item.itemIdentifier] = Place(parent: item.parentItemIdentifier, name: item.filename, uses: uses + 1)
        }
    }

    package func remove(_ identifier: ItemIdentifier) {
        places.withLock { places in
            guard let place = places[identifier] else { return }
            places[identifier] =
                place.uses > 1 ? Place(parent: place.parent, name: place.name, uses: place.uses - 1) : nil
        }
    }

    func place(of identifier: ItemIdentifier) -> Place? { places.withLock { $0[identifier] } }
}
