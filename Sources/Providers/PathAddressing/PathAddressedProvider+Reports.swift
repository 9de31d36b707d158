import FileProvider

/// A remote that can be asked what has changed.
package protocol ReportingRemote: PathRemote {
    func changeReports() async throws -> ChangeReports

    /// Where something came, went or changed: at a directory, or anywhere below it.
    ///
    /// - Parameters:
    ///   - mark: what an earlier answer gave; nil for a mark and nothing else. One that is not for this directory, or is
    ///     refused, counts as nil.
    ///   - isDeep: also what is deeper than in the directory itself.
    /// - Throws: `noSuchItem`.
    func changes(since mark: ChangeMark?, at path: RemotePath, isDeep: Bool) async throws -> RemoteReport
}

/// What a remote says has changed since a mark.
package struct RemoteReport: Hashable, Sendable {
    /// Nil where it does not say.
    package var paths: RemoteChanges?
    package var mark: ChangeMark?

    package init(paths: RemoteChanges?, mark: ChangeMark?) {
        self.paths = paths
        self.mark = mark
    }
}

package struct RemoteChanges: Hashable, Sendable {
    /// Came or changed.
    package var present: Set<RemotePath> = []
    /// Went.
    package var removed: Set<RemotePath> = []
    /// Of what is below these nothing is said.
    package var untold: Set<RemotePath> = []

    package init() {}

    package var isEmpty: Bool { present.isEmpty && removed.isEmpty && untold.isEmpty }

    /// Whether a directory may hold other things than before.
    func concern(_ directory: RemotePath, _ parents: Set<RemotePath>) -> Bool {
        if parents.contains(directory) || present.contains(directory) { return true }
        var above = directory
        while true {
            if removed.contains(above) || untold.contains(above) { return true }
            if above.names.isEmpty { return false }
            above = above.parent
        }
    }
}

extension PathAddressedProvider: ChangeReporter {
    package func changeReports() async throws -> ChangeReports {
        try await (remote as? any ReportingRemote)?.changeReports() ?? .none
    }

    package func changes(
        since mark: ChangeMark?, among directories: [ItemIdentifier]
    ) async throws -> ChangeReport {
        guard let remote = remote as? any ReportingRemote else { return ChangeReport(changed: nil, mark: nil) }
        // What we move meanwhile may be reported by either path.
        let before = locations(of: directories)
        let report = try await locate(.rootContainer) {
            try await remote.changes(since: mark, at: $0, isDeep: true)
        }
        guard let changes = report.paths else { return ChangeReport(changed: nil, mark: report.mark) }
        if changes.isEmpty { return ChangeReport(changed: [], mark: report.mark) }
        let after = locations(of: directories)
        let parents = Set((changes.present.union(changes.removed)).map(\.parent))
        let changed = directories.filter { directory in
            guard let path = before[directory], after[directory] == path else { return true }
            return changes.concern(path, parents)
        }
        return ChangeReport(changed: Set(changed), mark: report.mark)
    }

    package func changes(since mark: ChangeMark?, in directory: ItemIdentifier) async throws -> ChangeReport {
        guard let remote = remote as? any ReportingRemote else { return ChangeReport(changed: nil, mark: nil) }
        let report = try await locate(directory) {
            try await remote.changes(since: mark, at: $0, isDeep: false)
        }
        guard let changes = report.paths else { return ChangeReport(changed: nil, mark: report.mark) }
        return ChangeReport(changed: changes.isEmpty ? [] : [directory], mark: report.mark)
    }

    private func locations(of directories: [ItemIdentifier]) -> [ItemIdentifier: RemotePath] {
        directories.reduce(into: [:]) { locations, directory in locations[directory] = paths.path(of: directory) }
    }
}
