import FileProvider

/// For how long reports and versions are believed that say that nothing has changed, before all directories are compared again.
struct ComparisonTrust {
    /// When all directories were compared, whatever their versions say.
    private var comparedAllAt = ContinuousClock.now
    /// The same of a remote that reports, once it was done.
    private var comparedAllReportedAt: ContinuousClock.Instant?
    private var comparingAllTook = Duration.zero
    /// When a command asked for everything to be compared.
    private var isAskedSince: ContinuousClock.Instant?

    private static let most = Duration.seconds(3600)
    /// Of reports that may leave something out: longer where it takes long to compare everything.
    private static let mostInParts = Duration.seconds(300)
    private static let leastInParts = Duration.seconds(30)

    /// Nothing is believed until all directories have been compared from now on, where reports may leave something out.
    mutating func ask() { isAskedSince = .now }

    /// The next comparison is of everything.
    mutating func expire() {
        comparedAllAt = .now - Self.most - .seconds(1)
        comparedAllReportedAt = nil
    }

    /// Whether all directories are to be compared, whatever their versions say.
    var hasExpired: Bool { .now - comparedAllAt > Self.most }

    /// Whether all directories are to be compared, whatever these reports say.
    func hasExpired(for reports: ChangeReports) -> Bool {
        switch reports {
        case .none: return true
        case .ofAll, .ofDirectories(areComplete: true): return hasExpired
        case .ofDirectories(areComplete: false):
            guard isAskedSince == nil, let last = comparedAllReportedAt else { return true }
            let longest = comparingAllTook * BrowsedDirectories.longestShare
            return .now - last > max(Self.leastInParts, min(Self.mostInParts, longest))
        }
    }

    mutating func noteComparisonOfAll() { comparedAllAt = .now }

    /// All directories of a remote that reports were compared.
    mutating func noteComparisonOfAllReported(begun start: ContinuousClock.Instant) {
        let now = ContinuousClock.now
        (comparedAllAt, comparedAllReportedAt, comparingAllTook) = (now, now, now - start)
        if let asked = isAskedSince, asked <= start { isAskedSince = nil }
    }
}
