import FileProvider
import Replica
import Synchronization

/// Compares what the remote says has changed, and leaves alone what it says has not.
struct ReportedChanges: SyncPart {
    let context: SyncContext
    let request: FileProviderRequest

    /// Marks that hold from the moment on at which what they belong to was compared.
    struct Marks: Sendable {
        var ofDirectories: [InodeNumber: ChangeMark] = [:]
        /// For all directories together: only once all that changed were compared.
        var ofAll: ChangeMark??
    }

    /// A directory of fewer items is listed as quickly as it is asked about.
    static let fewestItems = 16

    func kind() async throws -> ChangeReports {
        guard calls.provider is any ChangeReporter else { return .none }
        return try await calls.make(.changeReports, for: request) { provider in
            try await (provider as? any ChangeReporter)?.changeReports() ?? .none
        }
    }

    /// The directories among these that have to be compared.
    ///
    /// - Parameter isForAll: all are, and what is asked for is a mark.
    func changed(
        _ directories: [ListedDirectory], isForAll: Bool, marks: inout Marks
    ) async throws -> [ListedDirectory] {
        let identifiers = directories.map(\.identifier)
        let mark = isForAll ? nil : try replica.database.mark(ofDirectory: .root)
        let report = try await calls.make(.changes, for: request) { provider in
            try await (provider as? any ChangeReporter)?.changes(since: mark, among: identifiers)
        }
        guard let report else { return directories }
        marks.ofAll = .some(report.mark)
        guard let changed = report.changed else { return directories }
        return directories.filter { changed.contains($0.identifier) }
    }

    /// Whether nothing has changed in a directory since it was compared.
    func isUnchanged(_ directory: ListedDirectory, isForAll: Bool, _ found: FoundMarks) async throws -> Bool {
        guard try replica.database.hasItems(Self.fewestItems, in: directory.number) else { return false }
        let known = try replica.database.mark(ofDirectory: directory.number)
        // A known mark stays valid for the next time.
        if isForAll, known != nil { return false }
        guard let report = try await report(since: known, in: directory.identifier) else { return false }
        if let mark = report.mark { found.note(mark, of: directory.number) }
        return report.changed?.isEmpty ?? false
    }

    /// - Returns: nil where there is none: the listing will say what is wrong.
    private func report(since mark: ChangeMark?, in directory: ItemIdentifier) async throws -> ChangeReport? {
        do throws(FileProviderError) {
            return try await calls.make(.changes, for: request) { provider in
                try await (provider as? any ChangeReporter)?.changes(since: mark, in: directory)
            }
        } catch {
            switch error.code.reaction {
            case .latchDomain, .stop: throw error
            case .parkItem, .changeState, .giveUpAsking, .retry: return nil
            }
        }
    }

    /// Keeps the marks of what is as it is on the remote.
    ///
    /// - Parameter isWhole: all that changed was compared.
    func keep(_ marks: Marks, except left: Set<InodeNumber>, isWhole: Bool) async throws {
        var kept = marks.ofDirectories.filter { !left.contains($0.key) }.mapValues { Optional($0) }
        if isWhole, let mark = marks.ofAll { kept[.root] = mark }
        let new = kept
        guard try new.contains(where: { try replica.database.mark(ofDirectory: $0.key) != $0.value }) else { return }
        try await commits.commit { ingestion in
            for (number, mark) in new { try ingestion.listings.noteMark(mark, of: number) }
        }
    }
}

/// The marks of directories that several tasks find at once.
final class FoundMarks: Sendable {
    private let found = Mutex<[InodeNumber: ChangeMark]>([:])

    var marks: [InodeNumber: ChangeMark] { found.withLock { $0 } }

    func note(_ mark: ChangeMark, of directory: InodeNumber) {
        found.withLock { $0[directory] = mark }
    }
}
