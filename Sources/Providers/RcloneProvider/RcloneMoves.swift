import FileProvider
import FileProviderPaths
import Synchronization

/// A rename of a directory that rclone makes file by file.
struct RcloneMove: Hashable, Sendable {
    var from: RemotePath
    var to: RemotePath

    /// What a call at a path has to do with.
    enum Extent { case item, listing, tree }

    func concerns(_ path: RemotePath, _ extent: Extent) -> Bool {
        [from, to].contains { place in
            if place == path || path.isBelow(place) { return true }
            return switch extent {
            case .item: false
            case .listing: place.parent == path
            case .tree: place.isBelow(path)
            }
        }
    }
}

/// The renames of directories that are under way or were interrupted. A record is on the disk before the first file is moved.
final class RcloneMoves: Sendable {
    private struct Record: Codable {
        var from: [String]
        var to: [String]
    }

    private struct State {
        /// Those that a caller is making.
        var running: Set<RcloneMove> = []
        var finishing: [RcloneMove: Task<Void, any Error>] = [:]
        /// Those that rclone refuses to finish.
        var stuck: Set<RcloneMove> = []
    }

    private let records: SurvivingRecords<Record>
    private let isReadOnly: Bool
    private let state = Mutex(State())

    /// - Parameter isReadOnly: nothing is finished.
    init(in store: ReportingStore, isReadOnly: Bool = false) {
        records = SurvivingRecords("rclone.moves", in: store)
        self.isReadOnly = isReadOnly
    }

    private static func key(_ move: RcloneMove) -> [UInt8] {
        Array((move.from.names.joined(separator: "/") + "\0" + move.to.names.joined(separator: "/")).utf8)
    }

    func contains(_ move: RcloneMove) -> Bool { records[Self.key(move)] != nil }

    /// The interrupted renames that have not turned out to be impossible since the start.
    var interrupted: [RcloneMove] {
        if isReadOnly { return [] }
        let all = records.all.map { RcloneMove(from: RemotePath($0.record.from), to: RemotePath($0.record.to)) }
        return all.isEmpty
            ? [] : state.withLock { state in all.filter { !state.running.contains($0) && !state.stuck.contains($0) } }
    }

    /// Makes a rename; its record stays when that fails.
    func make(_ move: RcloneMove, _ body: () async throws -> Void) async throws {
        let record = Record(from: move.from.names, to: move.to.names)
        try await OperationLedger.preparing { try records.save(Self.key(move), record, .synced) }
        state.withLock { _ = $0.running.insert(move) }
        defer { state.withLock { _ = $0.running.remove(move) } }
        try await body()
        end(move)
    }

    /// The rename was made, or nothing of it.
    func end(_ move: RcloneMove) {
        // A record that came back after a power cut would move what has the old name by then.
        records.remove(Self.key(move), .synced)
        state.withLock { _ = $0.stuck.remove(move) }
    }

    /// Finishes a rename for all callers that ask for it meanwhile. Goes on when they are cancelled.
    ///
    /// - Parameter limit: for how long the caller waits; nil for until the end.
    /// - Throws: `providerDomainTemporarilyUnavailable` after that time; errors of `body`.
    func finish(
        _ move: RcloneMove, waiting limit: Duration?, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        let task = state.withLock { state in
            if let task = state.finishing[move] { return task }
            let task = Task { [self] in
                defer { self.state.withLock { $0.finishing[move] = nil } }
                try await body()
                end(move)
            }
            state.finishing[move] = task
            return task
        }
        guard let limit else { return try await task.valueUnlessCancelled }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await task.valueUnlessCancelled }
            group.addTask {
                try await Task.sleep(for: limit)
                throw FileProviderError(
                    .providerDomainTemporarilyUnavailable,
                    "the interrupted renaming of '\(move.from.name ?? "")' is being finished")
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// The rename is not continued before the next start, or before it is asked for once more.
    func noteStuck(_ move: RcloneMove) { state.withLock { _ = $0.stuck.insert(move) } }
}
