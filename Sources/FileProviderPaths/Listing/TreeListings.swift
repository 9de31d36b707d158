import FileProvider
import Synchronization

/// Listings of whole trees: requested when a walk is detected, and given out directory by directory for a short while. No
/// listing waits for them: until a tree is complete, directories are listed one by one. A change made here ends a tree,
/// because the tree may be older.
final class TreeListings: Sendable {
    private struct Tree {
        var top: RemotePath
        var requestedAt: ContinuousClock.Instant
        /// The tick at which it was requested.
        var moment: Int
        /// Each is given once.
        var directories: [RemotePath: [RemoteEntry]] = [:]
        var count = 0
        var isComplete = false
    }

    private struct State {
        /// Directories that were listed lately.
        var recent: [(path: RemotePath, at: ContinuousClock.Instant)] = []
        var tree: Tree?
        var reader: Task<Void, Never>?
    }

    private let remote: any PathRemote
    private let paths: PathMap
    private let state = Mutex(State())
    /// For how long after its request a tree is used.
    private static let lifetime = Duration.seconds(20)
    private static let memory = Duration.seconds(2)
    private static let neededEvidence = 2
    private static let mostEntries = 200_000

    init(remote: any PathRemote, paths: PathMap) {
        self.remote = remote
        self.paths = paths
    }

    /// The entries of a directory, where a tree that was listed just now has them. Notes that the directory is being listed.
    func listing(of path: RemotePath) -> [RemoteEntry]? {
        let now = ContinuousClock.now
        let moment = paths.now
        let (listing, top) = state.withLock { state -> ([RemoteEntry]?, RemotePath?) in
            if let tree = state.tree, now - tree.requestedAt > Self.lifetime || tree.moment != moment {
                state.reader?.cancel()
                (state.tree, state.reader) = (nil, nil)
            }
            state.recent.removeAll { now - $0.at > Self.memory }
            let above = state.recent.map(\.path).filter { path.isBelow($0) }
            state.recent.append((path, now))
            if state.recent.count > 256 { state.recent.removeFirst() }
            if let tree = state.tree, path == tree.top || path.isBelow(tree.top) {
                return (tree.isComplete ? state.tree?.directories.removeValue(forKey: path) : nil, nil)
            }
            guard state.reader == nil, above.count >= Self.neededEvidence else { return (nil, nil) }
            return (nil, above.min { $0.names.count < $1.names.count })
        }
        if let top { read(top) }
        return listing
    }

    func stop() {
        state.withLock { state in
            state.reader?.cancel()
            (state.tree, state.reader) = (nil, nil)
        }
    }

    private func read(_ top: RemotePath) {
        let moment = paths.now
        state.withLock { state in
            guard state.reader == nil else { return }
            state.tree = Tree(top: top, requestedAt: .now, moment: moment, directories: [top: []])
            state.reader = Task { [self] in
                let isWhole = await readAll(below: top)
                self.state.withLock { state in
                    guard state.tree?.top == top else { return }
                    state.reader = nil
                    // An error is reported by the listing of the directory that it concerns.
                    if isWhole { state.tree?.isComplete = true } else { state.tree = nil }
                }
            }
        }
    }

    private func readAll(below top: RemotePath) async -> Bool {
        var token: [UInt8]?
        var check = CycleCheck<[UInt8]>()
        repeat {
            guard let part = try? await remote.tree(below: top, from: token, limit: 5000) else { return false }
            token = part.next
            do { try check.check(token, isEmpty: part.entries.isEmpty, of: "a tree") } catch { return false }
            let goesOn = state.withLock { state -> Bool in
                guard state.tree?.top == top, !Task.isCancelled else { return false }
                for (parent, entry) in part.entries {
                    state.tree?.directories[parent, default: []].append(entry)
                    guard entry.kind == .directory else { continue }
                    let own = parent.appending(entry.name)
                    if state.tree?.directories[own] == nil { state.tree?.directories[own] = [] }
                }
                state.tree?.count += part.entries.count
                return state.tree.map { $0.count <= Self.mostEntries } ?? false
            }
            guard goesOn else { return false }
        } while token != nil
        return true
    }
}
