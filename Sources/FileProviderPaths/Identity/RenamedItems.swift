import FileProvider

/// Searches of directories for items that are not under their known names any more.
///
/// A missing path does not prove that its item was removed: another client may have renamed it, or a directory above it, since
/// the last listing. Before the item counts as removed, the directory that held the name is listed, as a comparison does.
actor RenamedItems {
    enum Outcome {
        case isListed
        /// The directory itself is not there.
        case isMissing
    }

    private var running: [ItemIdentifier: Task<Outcome, any Error>] = [:]
    private var ended: [ItemIdentifier: (at: ContinuousClock.Instant, outcome: Outcome)] = [:]
    /// For how long a directory is not searched again: of a removed directory each item may be asked for.
    private static let pause = Duration.milliseconds(500)
    private static let mostEntries = 4096

    /// Searches a directory, once for all that ask meanwhile.
    func search(_ directory: ItemIdentifier, _ body: @escaping @Sendable () async throws -> Outcome) async throws
        -> Outcome
    {
        if let current = running[directory] {
            return try await CallContext.waiting { try await current.value }
        }
        if let last = ended[directory], .now - last.at < Self.pause { return last.outcome }
        let task = Task { try await body() }
        running[directory] = task
        defer { running[directory] = nil }
        let outcome = try await task.value
        if ended.count >= Self.mostEntries { ended = [:] }
        ended[directory] = (.now, outcome)
        return outcome
    }
}
