import FileProvider
import Synchronization

/// Finds items by a walk of the whole folder: items that were moved into a directory that was never listed, so that neither
/// the system nor inotify knows their path.
///
/// A walk is expensive. Its result is used for a while, and a walk ends after ``mostNames`` names. All functions block.
final class FolderIndex: Sendable {
    /// The parent and a name of each file, by ``FolderItems/file(_:)``.
    typealias Places = [String: (parent: String, name: String)]

    private struct State {
        var places: Places = [:]
        var builtAt: ContinuousClock.Instant?
        var took = Duration.zero
    }

    private let state = Mutex(State())
    static let root = ItemIdentifier.rootContainer.rawValue
    static let mostNames = 200_000
    private static let leastLifetime = Duration.seconds(5)
    /// A result is used for this many times the duration of its walk.
    private static let share = 20
    /// The maximum number of components of a path on Linux.
    static let deepest = 4096

    /// The names from the root down to an item; nil if the last walk has not found it.
    ///
    /// - Parameter walk: returns the places of all files; called when the last walk is too old.
    func path(of identifier: ItemIdentifier, walk: () -> Places) -> [String]? {
        state.withLock { state in
            let now = ContinuousClock.now
            let lifetime = max(Self.leastLifetime, state.took * Self.share)
            if state.builtAt.map({ now - $0 > lifetime }) ?? true {
                state = State(places: walk(), builtAt: .now, took: .now - now)
            }
            var names: [String] = []
            var current = FolderItems.file(of: identifier)
            while current != Self.root {
                guard let place = state.places[current], names.count < Self.deepest else { return nil }
                names.append(place.name)
                current = place.parent
            }
            return names.reversed()
        }
    }

    /// Discards the result after a move.
    func expire() {
        state.withLock { $0.builtAt = nil }
    }
}
