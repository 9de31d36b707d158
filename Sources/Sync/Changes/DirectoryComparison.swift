import FileProvider
import Replica

/// Compares listed directories with the remote, several at once. A failure of one does not stop the others.
struct DirectoryComparison: SyncPart {
    let context: SyncContext
    let listings: Listings
    let request: FileProviderRequest

    /// The compared directories, with the versions they had before.
    private(set) var compared: [(number: InodeNumber, version: [UInt8])] = []
    /// The first transient failure.
    private(set) var passing: FileProviderError?
    /// The first malformed answer.
    private(set) var malformed: FileProviderError?
    /// Directories that could not be compared and exist on the remote.
    private(set) var left: Set<InodeNumber> = []
    /// Whether something was left out, and is not compared again alone.
    private(set) var isPartial = false
    /// The directories that were noted to be compared when their comparison began.
    private var noted: Set<InodeNumber> = []

    private static let atOnce = 8

    init(_ context: SyncContext, listings: Listings, request: FileProviderRequest) {
        self.context = context
        self.listings = listings
        self.request = request
    }

    enum Outcome: Sendable {
        case compared
        case gone
        /// With what kept it from being compared.
        case left(FileProviderError)
    }

    /// - Parameter isUnchanged: asked of each before it is listed; what is unchanged is not.
    /// - Throws: what concerns the whole domain.
    mutating func compare(
        _ directories: [ListedDirectory],
        unless isUnchanged: @escaping @Sendable (ListedDirectory) async throws -> Bool = { _ in false }
    ) async throws {
        // Where something waits to be offered again, what the remote has makes sense after that.
        let ready = try directories.filter { try !replica.database.reimports.hasItemsToOffer(in: $0.number) }
        if ready.count < directories.count {
            isPartial = true
            try await noteLeftOut(Set(directories.map(\.number)).subtracting(ready.map(\.number)))
        }
        try await beginNoted(among: ready)
        let one = self
        try await withThrowingTaskGroup(of: (ListedDirectory, [UInt8], Outcome?).self) { group in
            var remaining = ready.makeIterator()
            func addNext() throws {
                guard let directory = remaining.next() else { return }
                let version = try replica.database.versions(ofDirectory: directory.number).present
                group.addTask {
                    if try await isUnchanged(directory) { return (directory, version, nil) }
                    return (directory, version, try await one.compare(directory.number))
                }
            }
            for _ in 0..<Self.atOnce { try addNext() }
            while let (directory, version, outcome) = try await group.next() {
                switch outcome {
                case nil, .gone: break
                case .compared: compared.append((directory.number, version))
                case .left(let failure):
                    left.insert(directory.number)
                    note(failure)
                }
                try addNext()
            }
        }
    }

    /// Notes directories that wait for a reimport, to be compared after it: a change feed tells of nothing that was before its new anchor.
    /// Without one, each round compares all.
    private func noteLeftOut(_ directories: Set<InodeNumber>) async throws {
        guard calls.provider.features.changeFeed else { return }
        try await commits.commit(changingNames: false) { ingestion in
            for number in directories { try ingestion.listings.noteIncomplete(number) }
        }
    }

    /// What is noted from here on is for the next comparison.
    private mutating func beginNoted(among directories: [ListedDirectory]) async throws {
        let begun = try Set(replica.database.directoriesToCompare()).intersection(directories.map(\.number))
        guard !begun.isEmpty else { return }
        noted.formUnion(begun)
        try await commits.commit(changingNames: false) { ingestion in
            for number in begun { try ingestion.listings.beginComparing(number) }
        }
    }

    /// What is missing in the compared directories was decided on: they need not be compared again, unless they were noted meanwhile.
    func finish() async throws {
        let finished = compared.map(\.number).filter(noted.contains)
        guard !finished.isEmpty else { return }
        try await commits.commit(changingNames: false) { ingestion in
            for number in finished { try ingestion.listings.finishComparing(number) }
        }
    }

    /// A directory was left for a failure.
    mutating func note(_ failure: FileProviderError) {
        if Backoff.isTransient(failure) {
            isPartial = true
            passing = passing ?? failure
        } else if failure.code == .malformedResponse {
            malformed = malformed ?? failure
        }
    }

    /// A directory whose failure will hardly pass by itself is noted as one to be compared again: the round goes on without it.
    ///
    /// - Throws: what concerns the whole domain.
    func compare(_ number: InodeNumber) async throws(FileProviderError) -> Outcome {
        do throws(FileProviderError) {
            try await listings.compare(number, request: request)
            warnings.succeeded(.comparison(number))
            return .compared
        } catch {
            // It was removed, alone or with a directory above it.
            if error.code == .noSuchItem {
                warnings.succeeded(.comparison(number))
                return .gone
            }
            switch error.code.reaction {
            case .latchDomain, .stop: throw error
            case .parkItem, .changeState, .giveUpAsking, .retry: break
            }
            let names = (try? replica.database.path(of: number)) ?? nil
            let path = names.map { $0.isEmpty ? "/" : $0.joined(separator: "/") } ?? "inode \(number)"
            warnings.report(
                "the directory '\(path)' cannot be compared with the remote: \(error)", of: .comparison(number))
            await commits.recordFailure(error, of: number)
            guard !Backoff.isTransient(error) else { return .left(error) }
            do {
                try await commits.commit(changingNames: false) { try $0.listings.noteIncomplete(number) }
            } catch {
                throw ProviderCalls.failure(from: error)
            }
            return .left(error)
        }
    }
}

extension ReplicaDatabase {
    /// The directories of which something was left out and that are to be compared now, and the time until the next of the others is
    /// to be. One that could not be compared waits longer after each failure.
    func comparisons() throws -> (due: [InodeNumber], next: Duration?) {
        let now = FileTimestamp.now
        var due: [InodeNumber] = []
        var next: Duration?
        for number in try directoriesToCompare() {
            guard let time = try pause(ofComparing: number), time > now else {
                due.append(number)
                continue
            }
            let wait = Duration.nanoseconds(time.nanosecondsSince1970 - now.nanosecondsSince1970)
            next = min(next ?? wait, wait)
        }
        return (due, next)
    }

    /// Until when a directory that could not be compared is not compared again; nil for any other.
    private func pause(ofComparing number: InodeNumber) throws -> FileTimestamp? {
        // The failure of one that is changed here is that of the change.
        guard let failure = try self.failure(of: number), try item(ofInode: number)?.changedFields.isEmpty == true
        else {
            return nil
        }
        // The clock was set back.
        guard failure.failedAt <= FileTimestamp.now else { return nil }
        let error = FileProviderError(FileProviderError.Code(rawValue: failure.code) ?? .cannotSynchronize)
        let backoff = Backoff.isTransient(error) ? Backoff.listing : .refusedRound
        return failure.failedAt.advanced(by: backoff.pause(after: failure.attempts - 1))
    }
}
