import FileNames
import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// Finds items by a walk through the whole folder: those that were moved into a directory that was never listed, and of
/// which therefore neither the system nor inotify knows the place.
///
/// A walk is expensive, so its result is used for a while, and a folder with more names than ``mostNames`` is searched only
/// as far as that. All functions block.
final class FolderIndex: Sendable {
    private struct State {
        /// By what tells files apart, the parent's likewise and one of the names.
        var places: [String: (parent: String, name: String)] = [:]
        var builtAt: ContinuousClock.Instant?
        var took = Duration.zero
    }

    private let state = Mutex(State())
    private static let root = ItemIdentifier.rootContainer.rawValue
    static let mostNames = 200_000
    private static let leastLifetime = Duration.seconds(5)
    /// A walk is made at most this part of the time.
    private static let share = 20
    /// No path on Linux has more components.
    private static let deepest = 4096

    /// The names from the root down to an item; nil when the last walk has not found it.
    func path(of identifier: ItemIdentifier, in folder: Folder) -> [String]? {
        state.withLock { state in
            let now = ContinuousClock.now
            let lifetime = max(Self.leastLifetime, state.took * Self.share)
            if state.builtAt.map({ now - $0 > lifetime }) ?? true { Self.build(&state, of: folder) }
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

    /// Something was moved since: the next search walks anew.
    func expire() {
        state.withLock { $0.builtAt = nil }
    }

    private static func build(_ state: inout State, of folder: Folder) {
        let start = ContinuousClock.now
        var places: [String: (parent: String, name: String)] = [:]
        if let root = try? folder.openRoot() {
            defer { try? root.close() }
            let device = try? FileStatus(of: root).device
            var waiting: [(path: [String], file: String)] = [([], Self.root)]
            while let (path, parent) = waiting.popLast() {
                guard places.count < mostNames, path.count < deepest, let directory = open(path, below: root) else {
                    continue
                }
                defer { try? directory.close() }
                for bytes in (try? directory.names()) ?? [] where folder.isShown(bytes, in: directory) {
                    let name = FileNameText.text(of: bytes)
                    guard parent != Self.root || !Folder.isTrashName(bytes),
                        let status = try? FileStatus(of: name, in: directory), status.device == device
                    else { continue }
                    let file = folder.items.file(status)
                    places[file] = (parent, name)
                    if status.kind == .directory { waiting.append((path + [name], file)) }
                }
            }
        }
        state = State(places: places, builtAt: .now, took: .now - start)
    }

    private static func open(_ path: [String], below root: FileDescriptor) -> FileDescriptor? {
        guard var current = try? root.openDirectory(named: ".") else { return nil }
        for name in path {
            let next = try? current.openDirectory(named: name)
            try? current.close()
            guard let next else { return nil }
            current = next
        }
        return current
    }
}
