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
    /// Directories that could not be compared and exist on the remote.
    private(set) var left: Set<InodeNumber> = []
    /// Whether something was left out.
    private(set) var isPartial = false

    private static let atOnce = 8

    init(_ context: SyncContext, listings: Listings, request: FileProviderRequest) {
        self.context = context
        self.listings = listings
        self.request = request
    }

    /// The result for one directory.
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
        if ready.count < directories.count { isPartial = true }
        let one = self
        try await withThrowingTaskGroup(of: (ListedDirectory, [UInt8], Outcome?).self) { group in
            var remaining = ready.makeIterator()
            func addNext() throws {
                guard let directory = remaining.next() else { return }
                let version = try replica.database.versions(ofDirectory: directory.number).present
                group.addTask {
                    if try await isUnchanged(directory) { return (directory, version, nil) }
                    return (directory, version, try await one.compare(directory.number, directory.identifier))
                }
            }
            for _ in 0..<Self.atOnce { try addNext() }
            while let (directory, version, outcome) = try await group.next() {
                switch outcome {
                case nil, .gone: break
                case .compared: compared.append((directory.number, version))
                case .left(let failure):
                    isPartial = true
                    left.insert(directory.number)
                    if failure.code.reaction == .retry { passing = passing ?? failure }
                }
                try addNext()
            }
        }
    }

    /// - Throws: what concerns the whole domain.
    func compare(_ number: InodeNumber, _ identifier: ItemIdentifier) async throws(FileProviderError) -> Outcome {
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
            let path = names.map { $0.isEmpty ? "/" : $0.joined(separator: "/") } ?? identifier.rawValue
            warnings.report(
                "the directory '\(path)' cannot be compared with the remote: \(error)", of: .comparison(number))
            await commits.recordFailure(error, of: number)
            return .left(error)
        }
    }
}
