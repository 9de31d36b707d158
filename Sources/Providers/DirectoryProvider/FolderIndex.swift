import FileProvider
import Synchronization

/// Finds items by a walk of the whole folder: items that were moved into a directory that was never listed, so that neither
/// the system nor inotify knows their path.
///
/// A walk is expensive. Its result is used for a while, and a walk ends after ``mostNames`` names. All functions block.
final class FolderIndex: Sendable {
    typealias Place = (parent: String, name: String)

    /// The parent and the name of each file, by ``FolderItems/file(_:)``.
    struct Places {
        private var first: [String: Place] = [:]
        /// Further names of files with several links.
        private var others: [String: [Place]] = [:]
        /// Whether the walk has skipped nothing in the folder.
        var isComplete = false

        var count: Int { first.count }

        subscript(file: String) -> Place? { first[file] }

        mutating func add(_ place: Place, of file: String) {
            if first[file] == nil { first[file] = place } else { others[file, default: []].append(place) }
        }

        /// Adds a place that was seen after the walk: it is looked at first.
        mutating func addNewest(_ place: Place, of file: String) {
            let older = all(of: file).filter { $0 != place }
            first[file] = place
            others[file] = older.isEmpty ? nil : older
        }

        func all(of file: String) -> [Place] { first[file].map { [$0] + (others[file] ?? []) } ?? [] }

        /// The names from the root down to each name of a file.
        func paths(of file: String) -> [[String]] {
            all(of: file).compactMap { place in
                var names = [place.name]
                var current = place.parent
                while current != FolderIndex.root {
                    guard let above = self[current], names.count < FolderIndex.deepest else { return nil }
                    names.append(above.name)
                    current = above.parent
                }
                return names.reversed()
            }
        }
    }

    private struct State {
        var places = Places()
        var builtAt: ContinuousClock.Instant?
        var took = Duration.zero

        var isTooOld: Bool { builtAt.map { .now - $0 > took * FolderIndex.share } ?? true }
    }

    private let state = Mutex(State())
    static let root = ItemIdentifier.rootContainer.rawValue
    static let mostNames = 200_000
    /// A result is used for this many times the duration of its walk.
    private static let share = 20
    /// The maximum number of components of a path on Linux.
    static let deepest = 4096

    /// The names from the root down to each name of a file; none if the last walk has not found it.
    ///
    /// - Parameter walk: returns the places of all files; called when the last walk is too old.
    func paths(of identifier: ItemIdentifier, walk: () -> Places) -> [[String]] {
        state.withLock { state in
            if state.isTooOld {
                let start = ContinuousClock.now
                state = State(places: walk(), builtAt: .now, took: .now - start)
            }
            return state.places.paths(of: FolderItems.file(of: identifier))
        }
    }

    /// A change was reported: the file is at a place where the last walk may not have found it. A lookup that follows would say
    /// that the item is gone.
    func note(_ identifier: ItemIdentifier, named name: String, in parent: ItemIdentifier) {
        state.withLock { state in
            if state.isTooOld {
                // The next lookup begins with a walk.
                state = State(took: state.took)
            } else {
                state.places.addNewest((FolderItems.file(of: parent), name), of: FolderItems.file(of: identifier))
            }
        }
    }

    /// Whether a walk takes no time to speak of, as far as is known.
    var isCheap: Bool { state.withLock { $0.took < Self.cheap } }
    private static let cheap = Duration.milliseconds(20)

    /// Discards the result after a move.
    func expire() {
        state.withLock { $0.builtAt = nil }
    }
}
