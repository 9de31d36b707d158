import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization

/// A journal of the files and directories with hidden names that this domain has made on the server and not removed yet:
/// uploads on their way, and the files of a ``CapabilityProbe``. An entry is written before the first request of its name and
/// goes when the name is known to be free again. What a daemon that was killed has left is thereby known at the next start.
final class HiddenFiles: Sendable {
    struct Record: Codable, Hashable, Sendable {
        /// The names from the root of the domain down.
        var names: [String]
        var isDirectory = false
        /// The last name is the prefix of all names of one probe.
        var isProbe = false

        var path: RemotePath { RemotePath(names) }
        fileprivate var key: [UInt8] { HiddenFiles.key(path) }
    }

    private let records: SurvivingRecords<Record>
    private let state: Mutex<State>

    private struct State {
        /// Of an earlier process.
        var leftBehind: [Record]
        var isClosed = false
    }

    init(in store: ReportingStore) {
        records = SurvivingRecords("webdav.hidden", in: store)
        state = Mutex(State(leftBehind: records.all.map(\.record)))
    }

    /// A hidden name is about to be used.
    ///
    /// - Throws: `domainDisabled` when the session has ended: nothing would remove it; what the store says.
    func add(_ path: RemotePath, isDirectory: Bool = false, isProbe: Bool = false) throws {
        guard !state.withLock({ $0.isClosed }) else { throw FileProviderError(.domainDisabled) }
        let record = Record(names: path.names, isDirectory: isDirectory, isProbe: isProbe)
        if records[record.key] == nil { try records.save(record.key, record) }
    }

    /// A hidden name is free: what had it was moved or deleted.
    func remove(_ path: RemotePath) { records.remove(Self.key(path)) }

    /// Everything that may be on the server.
    var all: [Record] { records.all.map(\.record) }

    /// Gives what an earlier process has left, once.
    func takeLeftBehind() -> [Record] {
        state.withLock { state in
            defer { state.leftBehind = [] }
            return state.leftBehind
        }
    }

    /// No further names are given out.
    func close() { state.withLock { $0.isClosed = true } }

    private static func key(_ path: RemotePath) -> [UInt8] {
        Array(path.names.map { Array($0.utf8) }.joined(separator: [UInt8(ascii: "/")]))
    }
}

extension WebDAVRemote {
    /// How long the end of a session may take to remove hidden files.
    private static let closingTime = Duration.seconds(2)
    /// A server may make a file from an upload that was broken off after it has answered that there is none.
    private static let settlingTime = Duration.milliseconds(300)

    /// A new hidden name beside a path's own, noted before it is used.
    func makeHiddenPath(in directory: RemotePath) throws -> RemotePath {
        let path = directory.appending(HiddenName.make())
        try hiddenFiles.add(path)
        return path
    }

    /// Removes what an interrupted call has left, without making anybody wait for it. A server may notice late that a
    /// transfer was broken off, and make the file only then.
    func removeLater(_ hidden: RemotePath, isDirectory: Bool = false) {
        // A session that has ended removes what is noted already.
        try? hiddenFiles.add(hidden, isDirectory: isDirectory)
        Task {
            var isAnswered = false
            for pause in [0, 1, 4, 20] {
                try? await Task.sleep(for: .seconds(pause))
                let status = await deleteHidden(hidden, isDirectory: isDirectory)
                isAnswered = status != nil
                if pause > 0, status == 404 { break }
            }
            if isAnswered { hiddenFiles.remove(hidden) }
        }
    }

    /// Removes what an earlier process has left.
    func removeLeftBehind() {
        if isReadOnly { return }
        let records = hiddenFiles.takeLeftBehind()
        guard !records.isEmpty else { return }
        Task {
            for record in records {
                let isOver =
                    record.isProbe
                    ? await CapabilityProbe.removeAll(of: record.path, on: self)
                    : await deleteHidden(record.path, isDirectory: record.isDirectory) != nil
                guard isOver else { continue }
                hiddenFiles.remove(record.path)
                if let name = record.path.name { await clearTrash(ofNamesBeginningWith: name) }
            }
        }
    }

    /// Removes everything hidden at the end of a session, as far as the server answers in time. The rest stays noted for the
    /// next start, and so does what was being sent until now: the server may make it yet.
    func removeHidden(endingProbe probe: Task<ServerCapabilities, any Error>?) async {
        if isReadOnly { return }
        let work = Task {
            // It ends with the request that is under way, and removes its own files.
            _ = await probe?.result
            for round in 0..<2 {
                let records = hiddenFiles.all
                if records.isEmpty { return }
                if round > 0 { try? await Task.sleep(for: Self.settlingTime) }
                await withTaskGroup(of: Void.self) { group in
                    for record in records {
                        group.addTask { [self] in
                            if !record.isProbe {
                                _ = await deleteHidden(record.path, isDirectory: record.isDirectory)
                            } else if await CapabilityProbe.removeAll(of: record.path, on: self) {
                                hiddenFiles.remove(record.path)
                            }
                        }
                    }
                }
            }
        }
        let timer = Task {
            try await Task.sleep(for: Self.closingTime)
            work.cancel()
        }
        await work.value
        timer.cancel()
    }

    /// - Returns: the status of the answer; nil when it has to be tried again.
    func deleteHidden(_ path: RemotePath, isDirectory: Bool) async -> Int? {
        let response = try? await client.send("DELETE", client.url(of: path, isDirectory: isDirectory))
        guard let status = response?.status, status < 500, status != 423 else { return nil }
        return status
    }
}
