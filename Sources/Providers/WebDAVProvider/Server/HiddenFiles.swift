import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// The files and directories with hidden names that this domain has created on the server: uploads in progress and the files
/// of a capability probe. Each is recorded before the first request with its name, until the name is known to be free again,
/// so that the next start removes what a killed daemon has left.
final class HiddenFiles: Sendable {
    struct Record: Codable, Hashable, Sendable {
        /// The names from the root of the domain down.
        var names: [String]
        var isDirectory = false
        /// The last name is the prefix of all names of one probe.
        var isProbe = false
        /// Until then, in seconds since 1970, the server may be moving it; nil for any other.
        var isMovedUntil: Int64?
        /// Where that move may replace what is newer; nil for any other file.
        var replacement: Replacement?
        /// Since when, in seconds since 1970, it is known that the directory is not at its path; nil while it is there.
        var soughtSince: Int64?

        fileprivate var secondsLeft: Int64 { HiddenFiles.secondsLeft(ofMoveUntil: isMovedUntil) }

        var path: RemotePath { RemotePath(names) }
        fileprivate var key: [UInt8] { HiddenFiles.key(path) }
    }

    /// What a move that the server may make late would do.
    struct Replacement: Codable, Hashable, Sendable {
        /// The names of the target from the root of the domain down.
        var names: [String]
        /// In bytes.
        var size: Int64
        /// SHA-256 of the content; nil where it is not known.
        var digest: [UInt8]?
        /// What the content is recognized by at the target; nil where nothing is known.
        var mark: SentContents.Mark?
    }

    private let records: SurvivingRecords<Record>
    private let client: WebDAVClient
    private let trash: TrashContents
    private let state: Mutex<State>
    /// The time for removing hidden files at the end of a session.
    private static let closingTime = Duration.seconds(2)
    /// The time after that for a probe to remove its own files: its requests are not cancelled.
    private static let closingTimeOfProbe = Duration.seconds(8)
    /// A server may create a file from an aborted upload after it has answered that there is none.
    private static let settlingTime = Duration.milliseconds(300)
    /// In seconds. The answer to a long move is waited for as long: ``HTTPTransport/Configuration/longTimeout``.
    private static let movingTime: Int64 = 600
    /// In seconds. After that the directory of a hidden file counts as deleted, and not as renamed.
    private static let seekingTime: Int64 = 30 * 86_400

    private struct State {
        /// Records of an earlier process.
        var leftBehind: [Record]
        /// The files of which a move is in flight.
        var moving: Set<RemotePath> = []
        var isClosed = false
    }

    init(in store: ReportingStore, client: WebDAVClient, trash: TrashContents) {
        records = SurvivingRecords("webdav.hidden", in: store)
        self.client = client
        self.trash = trash
        state = Mutex(State(leftBehind: records.all.map(\.record)))
    }

    // MARK: - Records

    /// Records a hidden name before its first use.
    ///
    /// - Throws: `domainDisabled` when the session has ended; the errors of the store.
    func add(_ path: RemotePath, isDirectory: Bool = false, isProbe: Bool = false) throws {
        guard !state.withLock({ $0.isClosed }) else { throw FileProviderError(.domainDisabled) }
        let record = Record(names: path.names, isDirectory: isDirectory, isProbe: isProbe)
        if records[record.key] == nil { try records.save(record.key, record) }
    }

    /// Returns a new hidden path, which is recorded.
    func make(in directory: RemotePath) throws -> RemotePath {
        let path = directory.appending(HiddenName.make())
        try add(path)
        return path
    }

    /// A hidden name is free: the item was moved or deleted.
    func remove(_ path: RemotePath) {
        _ = state.withLock { $0.moving.remove(path) }
        records.remove(Self.key(path))
    }

    /// What is below a directory gets another path with it. Until the move of the directory is known to be made, it may be in either
    /// place.
    func carry(_ directory: RemotePath, to newDirectory: RemotePath, isMade: Bool) {
        var changes: [(name: [UInt8], record: Record?)] = []
        for record in all where record.path.isBelow(directory) {
            var moved = record
            moved.names.replaceSubrange(..<directory.names.count, with: newDirectory.names)
            changes.append((moved.key, moved))
            guard isMade else { continue }
            changes.append((record.key, nil))
            if moved.isMovedUntil != nil { deleteWhenMoved(moved) }
        }
        records.apply(changes)
    }

    /// Everything that may be on the server.
    var all: [Record] { records.all.map(\.record) }

    /// Ends the use of new names.
    func close() { state.withLock { $0.isClosed = true } }

    private static func key(_ path: RemotePath) -> [UInt8] {
        Array(path.names.map { Array($0.utf8) }.joined(separator: [UInt8(ascii: "/")]))
    }

    // MARK: - Removal

    /// Deletes the item of an aborted call, without delaying the caller. A server may notice late that a transfer was
    /// aborted, and create the file only then.
    func delete(_ hidden: RemotePath, isDirectory: Bool = false) {
        _ = state.withLock { $0.moving.remove(hidden) }
        let record = Record(names: hidden.names, isDirectory: isDirectory)
        if records[record.key]?.isMovedUntil != nil {
            // The server has refused to move it, or has had the time for it.
            records.set(record.key, record)
        } else {
            // After the end of the session this fails, and the end removes what is recorded.
            try? add(hidden, isDirectory: isDirectory)
        }
        Task {
            var isAnswered = false
            for pause in [0, 1, 4, 20] {
                try? await Task.sleep(for: .seconds(pause))
                let status = await client.deleteHidden(hidden, isDirectory: isDirectory)
                isAnswered = status != nil
                if pause > 0, status == 404 { break }
            }
            if isAnswered { remove(hidden) }
        }
    }

    /// A move of a file is about to be requested. Its source is kept, also past the end of the session or of the process, as
    /// long as the server may be making the move.
    ///
    /// - Parameter replacement: what the move does if the server makes it late; nil where that can do no harm.
    /// - Throws: the errors of the store.
    func noteMoving(_ hidden: RemotePath, _ replacement: Replacement?) throws {
        _ = state.withLock { $0.moving.insert(hidden) }
        let record = Record(names: hidden.names, isMovedUntil: Self.endOfMove, replacement: replacement)
        try records.save(record.key, record)
    }

    /// A move had no answer. Its source is deleted if it is still there when the server has had the time for the move.
    ///
    /// - Returns: what the move does if the server makes it late.
    func keepWhileMoving(_ hidden: RemotePath) -> Replacement? {
        _ = state.withLock { $0.moving.remove(hidden) }
        guard var record = records[Self.key(hidden)] else { return nil }
        record.isMovedUntil = Self.endOfMove
        records.set(record.key, record)
        deleteWhenMoved(record)
        return record.replacement
    }

    /// When a move that is requested now is over, in seconds since 1970.
    static var endOfMove: Int64 { FileTimestamp.now.seconds + movingTime }

    /// - Parameter end: from ``endOfMove``; nil for no move.
    static func secondsLeft(ofMoveUntil end: Int64?) -> Int64 {
        let left = (end ?? 0) - FileTimestamp.now.seconds
        // The clock was set back.
        return left > movingTime ? 0 : left
    }

    /// What the move of a file that is kept would write is known now.
    func note(_ digest: [UInt8], of hidden: RemotePath) {
        guard var record = records[Self.key(hidden)], record.replacement != nil else { return }
        record.replacement?.digest = digest
        records.set(record.key, record)
    }

    /// The sources of moves without an answer that may still replace what is at a path, or below it.
    func sources(ofMovesTo path: RemotePath) -> [(hidden: RemotePath, replacement: Replacement)] {
        let moving = state.withLock { $0.moving }
        return all.compactMap { record in
            guard let replacement = record.replacement, replacement.names.starts(with: path.names),
                record.secondsLeft > 0, !moving.contains(record.path)
            else {
                return nil
            }
            return (record.path, replacement)
        }
    }

    private func deleteWhenMoved(_ record: Record) {
        Task { [weak self, client] in
            var pause: Int64 = 20
            while record.secondsLeft > 0 {
                try? await Task.sleep(for: .seconds(min(pause, max(1, record.secondsLeft))))
                pause *= 2
                guard let self, self.isWaiting(for: record) else { return }
                let status = (try? await client.send("HEAD", client.root.url(of: record.path)))?.status
                if status == 404 || status == 410 { return await self.settle(record) }
            }
            guard let self, self.isWaiting(for: record) else { return }
            self.delete(record.path)
        }
    }

    /// The next start continues what is left at the end of a session.
    private func isWaiting(for record: Record) -> Bool {
        !state.withLock { $0.isClosed } && records[record.key] != nil
    }

    /// Deletes what an earlier process has left, once.
    func deleteLeftBehind() {
        let left = state.withLock { exchange(&$0.leftBehind, with: []) }
        guard !left.isEmpty else { return }
        Task {
            for record in left {
                guard record.secondsLeft <= 0 else {
                    deleteWhenMoved(record)
                    continue
                }
                guard await delete(record) else { continue }
                await settle(record)
                if let name = record.path.name { await trash.clear(namesBeginningWith: name) }
            }
        }
    }

    /// Ends the record of a file that is not at its path any more. Where its directory is not there either, another client may have
    /// renamed the directory: the record stays, and the file is deleted when a listing has it.
    private func settle(_ record: Record) async {
        let parent = record.path.parent
        if parent != .root {
            do {
                let there = try await ifExists {
                    try await client.resource(
                        at: client.root.url(of: parent, isDirectory: true), .usual, what: parent.name ?? "/")
                }
                // A rename here has given it another path meanwhile.
                guard records[record.key] != nil else { return }
                let now = FileTimestamp.now.seconds
                let since = record.soughtSince ?? now
                if there?.resource.isMissing ?? true, now - since < Self.seekingTime {
                    var sought = record
                    sought.soughtSince = since
                    return records.set(record.key, sought)
                }
            } catch {
                // The next start asks again.
                return
            }
        }
        remove(record.path)
    }

    /// Whether an item in a listing is one that an earlier process has left in a directory that was renamed since.
    func isSought(_ name: String) -> Bool { sought(name) != nil }

    private func sought(_ name: String) -> Record? {
        all.first { record in
            guard record.soughtSince != nil, record.secondsLeft <= 0, let own = record.path.name else { return false }
            return record.isProbe ? name.utf8.starts(with: own.utf8) : name.utf8.elementsEqual(own.utf8)
        }
    }

    /// Deletes an item that ``isSought(_:)``.
    func deleteSought(at path: RemotePath) async {
        guard let name = path.name, let record = sought(name), let own = record.path.name else { return }
        var found = record
        found.names = path.parent.names + [own]
        guard await delete(found) else { return }
        remove(record.path)
        await trash.clear(namesBeginningWith: own)
    }

    /// - Returns: whether the server has answered.
    private func delete(_ record: Record) async -> Bool {
        record.isProbe
            ? await ProbeFiles(record.path).removeAll(by: client)
            : await client.deleteHidden(record.path, isDirectory: record.isDirectory) != nil
    }

    /// Deletes all hidden items at the end of a session that are not being moved, as far as the server answers in time.
    /// Uploads stay recorded for the next start, because the server may still create their files.
    ///
    /// - Parameter task: the probe in progress, which removes its own files when it ends.
    func deleteAll(after probe: Task<ServerCapabilities, any Error>?) async {
        let work = Task {
            _ = await probe?.result
            for round in 0..<2 {
                let records = all.filter { $0.secondsLeft <= 0 && $0.soughtSince == nil }
                if records.isEmpty { return }
                if round > 0 { try? await Task.sleep(for: Self.settlingTime) }
                await withTaskGroup(of: Void.self) { group in
                    for record in records {
                        group.addTask { [self] in
                            if await delete(record), record.isProbe { remove(record.path) }
                        }
                    }
                }
            }
        }
        let timer = Task {
            try await Task.sleep(for: Self.closingTime)
            work.cancel()
            try await Task.sleep(for: Self.closingTimeOfProbe)
            // A server that does not answer would be waited for by one request of the probe after the other.
            await client.transport.close()
        }
        await work.value
        timer.cancel()
    }
}
