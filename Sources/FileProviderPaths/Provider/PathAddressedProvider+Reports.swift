import FileProvider

extension PathAddressedProvider: ChangeReporter {
    package func changeReports() async throws -> ChangeReports {
        try await (remote as? any ReportingRemote)?.changeReports() ?? .none
    }

    package func changes(
        since mark: ChangeMark?, among directories: [ItemIdentifier]
    ) async throws -> ChangeReport {
        guard let remote = remote as? any ReportingRemote else { return ChangeReport(changed: nil, mark: nil) }
        // An item that is moved meanwhile may be reported by either path.
        let before = locations(of: directories)
        let report = try await tree.locate(.rootContainer) {
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
        let report = try await tree.locate(directory) {
            try await remote.changes(since: mark, at: $0, isDeep: false)
        }
        guard let changes = report.paths else { return ChangeReport(changed: nil, mark: report.mark) }
        return ChangeReport(changed: changes.isEmpty ? [] : [directory], mark: report.mark)
    }

    private func locations(of directories: [ItemIdentifier]) -> [ItemIdentifier: RemotePath] {
        directories.reduce(into: [:]) { locations, directory in locations[directory] = tree.paths.path(of: directory) }
    }
}
