import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// Asks the server what has changed, where it supports sync-collection reports (RFC 6578).
final class CollectionReports: Sendable {
    private struct State {
        /// The depth of reports; nil before it was detected.
        var level: SyncCollection.Level?
        var isUnsupported = false
        /// How often in a row a report of a collection was refused.
        var refusals: [RemotePath: Int] = [:]
    }

    private let server: WebDAVServer
    private let state = Mutex(State())
    /// A report that was refused so often is not requested again.
    private static let mostRefusals = 3
    private static let mostPaths = 1000
    /// The number of parts of one report.
    private static let mostParts = 1000

    init(_ server: WebDAVServer) {
        self.server = server
    }

    private var isOffered: Bool {
        server.announcement.offersReports && !state.withLock { $0.isUnsupported } && !server.hasIdentifiers
    }

    private var isComplete: Bool { server.capabilityStore.capabilities?.reportsCollections == true }

    /// How changes are detected other than by listings, as a phrase that follows the server's name; nil for listings alone.
    var remark: String? {
        if server.hasIdentifiers { return "gives a directory another version when something below it changes" }
        guard isOffered, let level = state.withLock({ $0.level }) else { return nil }
        switch level {
        case .all:
            return server.capabilityStore.capabilities?.reportsAll == false
                ? nil : "is asked what has changed, for all directories at once"
        case .members:
            return "is asked what has changed, directory by directory"
                + (isComplete
                    ? ""
                    : ", and now and then for listings: of directories that came or went it is not known to tell")
        }
    }

    func changeReports() async throws -> ChangeReports {
        try await server.connect()
        guard isOffered else { return .none }
        if state.withLock({ $0.level }) == nil {
            do {
                let found = try await detectLevel()
                state.withLock { ($0.level, $0.isUnsupported) = (found, found == nil) }
            } catch let error as FileProviderError where error.code == .noSuchItem {
                // The listing of the root will report it.
                return .none
            }
        }
        switch state.withLock({ $0.level }) {
        case nil: return .none
        case .all:
            return server.capabilityStore.capabilities?.reportsAll == false || isRefused(.root) ? .none : .ofAll
        case .members: return .ofDirectories(areComplete: isComplete)
        }
    }

    /// Requests the changes since the present token.
    private func detectLevel() async throws -> SyncCollection.Level? {
        for level in [SyncCollection.Level.all, .members] {
            guard let token = try await token(of: .root) else { return nil }
            if case .report = try await report(.root, level, since: token).send() { return level }
        }
        return nil
    }

    func changes(since mark: ChangeMark?, at path: RemotePath, isDeep: Bool) async throws -> RemoteReport {
        try await server.connect()
        let level = isDeep ? SyncCollection.Level.all : .members
        let address = server.client.root.url(of: path, isDirectory: true).path
        if isRefused(path) { return RemoteReport(paths: nil, mark: nil) }
        func marked(_ token: String?) -> ChangeMark? { token.map { TokenMark(level, address, $0).bytes } }

        guard let known = mark.flatMap(TokenMark.init), known.level == level,
            known.path.utf8.elementsEqual(address.utf8)
        else { return RemoteReport(paths: nil, mark: marked(try await token(of: path))) }
        guard let report = try await wholeReport(path, level, since: known.token) else {
            noteRefusal(of: path)
            return RemoteReport(paths: nil, mark: marked(try await token(of: path)))
        }
        state.withLock { if !$0.refusals.isEmpty { $0.refusals[path] = nil } }
        return RemoteReport(paths: report.isUnclear ? nil : report.changes, mark: marked(report.token))
    }

    /// All parts of a report together; nil when the server refuses it.
    private func wholeReport(
        _ path: RemotePath, _ level: SyncCollection.Level, since token: String
    ) async throws -> SyncCollection.Part? {
        var whole = SyncCollection.Part()
        var next = token
        for _ in 0..<Self.mostParts {
            guard case .report(let part) = try await report(path, level, since: next).send(), let token = part.token
            else { return nil }
            whole.append(part)
            guard part.isTruncated else { return whole }
            // Otherwise it would never end.
            if token == next { return nil }
            next = token
        }
        return nil
    }

    private func report(_ path: RemotePath, _ level: SyncCollection.Level, since token: String) -> SyncCollection {
        SyncCollection(client: server.client, path: path, level: level, token: token)
    }

    private func token(of path: RemotePath) async throws -> String? {
        try await SyncCollection.token(of: path, by: server.client)
    }

    private func isRefused(_ path: RemotePath) -> Bool {
        state.withLock { $0.refusals[path, default: 0] >= Self.mostRefusals }
    }

    private func noteRefusal(of path: RemotePath) {
        state.withLock { state in
            if state.refusals.count > Self.mostPaths { state.refusals = [:] }
            state.refusals[path, default: 0] += 1
        }
    }
}

/// A collection's token as the system stores it: with its level and the collection's path, because a moved collection is
/// another one.
private struct TokenMark {
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
