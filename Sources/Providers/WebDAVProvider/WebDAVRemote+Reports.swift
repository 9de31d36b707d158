import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization

/// What a server was found to report of changes.
final class ReportCapabilities: Sendable {
    private struct State {
        /// The server says that it reports changes.
        var isOffered = false
        var level: SyncCollection.Level?
        /// How often in a row a report of a collection was refused.
        var refusals: [RemotePath: Int] = [:]
    }

    private let state = Mutex(State())
    /// What is refused so often is not asked for again.
    private static let mostRefusals = 3
    private static let mostPaths = 1000

    var isOffered: Bool { state.withLock { $0.isOffered } }
    /// How deep reports go; nil where there are none, or it is not known yet.
    var level: SyncCollection.Level? { state.withLock { $0.isOffered ? $0.level : nil } }

    func note(isOffered: Bool) { state.withLock { $0.isOffered = isOffered } }
    func note(_ level: SyncCollection.Level) { state.withLock { $0.level = level } }

    func isRefused(_ path: RemotePath) -> Bool {
        state.withLock { $0.refusals[path, default: 0] >= Self.mostRefusals }
    }

    func noteRefusal(of path: RemotePath) {
        state.withLock { state in
            if state.refusals.count > Self.mostPaths { state.refusals = [:] }
            state.refusals[path, default: 0] += 1
        }
    }

    func noteReport(of path: RemotePath) {
        state.withLock { if !$0.refusals.isEmpty { $0.refusals[path] = nil } }
    }
}

/// A token of a collection, as the system keeps it: with how deep it is for, and whose it is, for what was moved is another
/// collection.
private struct Mark {
    var level: SyncCollection.Level
    var path: String
    var token: String

    init(_ level: SyncCollection.Level, _ path: String, _ token: String) {
        (self.level, self.path, self.token) = (level, path, token)
    }

    init?(_ bytes: ChangeMark) {
        let parts = bytes.split(separator: 0x0A, maxSplits: 2, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        guard parts.count == 3, let level = SyncCollection.Level(rawValue: parts[0]) else { return nil }
        (self.level, path, token) = (level, parts[1], parts[2])
    }

    var bytes: ChangeMark { Array("\(level.rawValue)\n\(path)\n\(token)".utf8) }
}

extension WebDAVRemote: ReportingRemote {
    /// How changes are found where not by listings alone, in words that go on after the server's name.
    var reportRemarks: [String] {
        if isOwnCloud { return ["gives a directory another version when something below it changes"] }
        let capabilities = capabilityStore.capabilities
        switch reportCapabilities.level {
        case .all where capabilities?.reportsAll != false:
            return ["is asked what has changed, for all directories at once"]
        case .members where capabilities?.reportsCollections == true:
            return ["is asked what has changed, directory by directory"]
        case .members:
            return [
                "is asked what has changed, directory by directory, and now and then for listings: of directories that "
                    + "came or went it is not known to tell"
            ]
        case .all, nil: return []
        }
    }

    /// In so many parts a report may come.
    private static let mostParts = 1000

    package func changeReports() async throws -> ChangeReports {
        try await connect()
        guard reportCapabilities.isOffered, !isOwnCloud else { return .none }
        if reportCapabilities.level == nil {
            do {
                try await findLevel()
            } catch let error as FileProviderError where error.code == .noSuchItem {
                // Whoever lists the root will say so.
                return .none
            }
        }
        switch reportCapabilities.level {
        case nil: return .none
        case .all:
            return capabilityStore.capabilities?.reportsAll == false || reportCapabilities.isRefused(.root)
                ? .none : .ofAll
        case .members: return .ofDirectories(areComplete: capabilityStore.capabilities?.reportsCollections == true)
        }
    }

    /// Asks for what has changed since just now.
    private func findLevel() async throws {
        for level in [SyncCollection.Level.all, .members] {
            guard let token = try await token(of: .root) else { break }
            let question = SyncCollection(client: client, path: .root, level: level, token: token)
            if case .report = try await question.ask() { return reportCapabilities.note(level) }
        }
        reportCapabilities.note(isOffered: false)
    }

    package func changes(since mark: ChangeMark?, at path: RemotePath, isDeep: Bool) async throws -> RemoteReport {
        try await connect()
        let level = isDeep ? SyncCollection.Level.all : .members
        let address = client.url(of: path, isDirectory: true).path
        if reportCapabilities.isRefused(path) { return RemoteReport(paths: nil, mark: nil) }
        func marked(_ token: String?) -> ChangeMark? { token.map { Mark(level, address, $0).bytes } }

        guard let known = mark.flatMap(Mark.init), known.level == level, known.path.utf8.elementsEqual(address.utf8)
        else {
            return RemoteReport(paths: nil, mark: marked(try await token(of: path)))
        }
        guard let report = try await report(since: known.token, at: path, level) else {
            reportCapabilities.noteRefusal(of: path)
            return RemoteReport(paths: nil, mark: marked(try await token(of: path)))
        }
        reportCapabilities.noteReport(of: path)
        return RemoteReport(paths: report.isUnclear ? nil : report.changes, mark: marked(report.token))
    }

    /// All parts of a report together; nil where the server does not give it.
    private func report(
        since token: String, at path: RemotePath, _ level: SyncCollection.Level
    ) async throws -> SyncCollection.Part? {
        var whole = SyncCollection.Part()
        var next = token
        for _ in 0..<Self.mostParts {
            let question = SyncCollection(client: client, path: path, level: level, token: next)
            guard case .report(let part) = try await question.ask(), let token = part.token, !token.isEmpty else {
                return nil
            }
            whole.changes.add(part.changes)
            whole.isUnclear = whole.isUnclear || part.isUnclear
            whole.token = token
            guard part.isTruncated else { return whole }
            // It would go on for ever.
            if token == next { return nil }
            next = token
        }
        return nil
    }

    /// The present token of a collection; nil where it has none.
    func token(of path: RemotePath) async throws -> String? {
        let found = Mutex<DAVResource?>(nil)
        _ = try await client.properties(
            client.url(of: path, isDirectory: true), depth: 0, body: DAVResource.requestForToken, what: path.name ?? "/"
        ) { resource, _ in found.withLock { $0 = $0 ?? resource } }
        return found.withLock { $0?.syncToken }
    }
}

extension RemoteChanges {
    /// What came later counts.
    fileprivate mutating func add(_ later: RemoteChanges) {
        present.formUnion(later.present)
        removed.formUnion(later.removed)
        untold.formUnion(later.untold)
    }
}
