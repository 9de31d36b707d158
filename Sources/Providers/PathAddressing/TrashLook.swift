import FileProvider

/// Lists a remote's trash. One listing answers all who ask before it is asked for.
actor TrashLook {
    private struct Listing {
        var entries: [TrashedEntry]
        /// What the root was before, and what we had done by then.
        var root: [UInt8]
        var moment: Int
        var askedAt: ContinuousClock.Instant
    }

    private let remote: any TrashingRemote
    private let book: TrashRecords
    private var running: Task<[TrashedEntry], any Error>?
    private var last: Listing?
    /// For how long nobody need ask again where nothing has been thrown away or brought back.
    private static let trust = Duration.seconds(60)
    /// So many are kept.
    private static let mostKept = 4096

    init(remote: any TrashingRemote, book: TrashRecords) {
        self.remote = remote
        self.book = book
    }

    /// What lies in the trash and was not deleted here, each as it was before, as far as that is known. Nothing of it is
    /// older than the call.
    func entries() async throws -> [TrashedEntry] {
        if let current = running {
            _ = await current.result
            if let next = running, next != current { return try await next.value }
        }
        let task = Task { [remote, book] in
            let moment = book.now
            return book.settle(try await remote.trashedEntries(), since: moment)
        }
        running = task
        defer { if running == task { running = nil } }
        return try await task.value
    }

    /// Likewise, for who looks again and again: where versions of directories cover what is below, nothing comes into the
    /// trash or out of it without another version of the root. What was deleted in it for good is noticed a little later.
    func entriesNowAndThen() async throws -> [TrashedEntry] {
        guard remote.traits.directoryTagsCoverTrees else { return try await entries() }
        let (moment, askedAt) = (book.now, ContinuousClock.now)
        let root = try await remote.entry(at: .root).tag
        if let last, last.root == root, last.moment == moment, askedAt - last.askedAt < Self.trust {
            return last.entries
        }
        let found = try await entries()
        last = found.count > Self.mostKept ? nil : Listing(entries: found, root: root, moment: moment, askedAt: askedAt)
        return found
    }
}
