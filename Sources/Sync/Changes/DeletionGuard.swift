import Synchronization

/// Holds back a round of changes that would remove much of the replica at once: more often the disk or the account
/// behind the remote is missing than the items.
final class DeletionGuard: Sendable {
    private struct State {
        /// Whether the round that runs, or ran last, was held.
        var isHolding = false
        /// Whether the round before the one that runs was held, and this one has not come as far yet.
        var wasHolding = false
        var isReleased = false
        /// The warning about the round that is held.
        var warning: String?
    }

    private let state = Mutex(State())
    private let domainName: String
    private let warnings: Warnings
    private static let mostItems = 100
    private static let mostPercent = 30

    init(domainName: String, warnings: Warnings) {
        self.domainName = domainName
        self.warnings = warnings
    }

    func beginRound() {
        state.withLock { state in
            state.wasHolding = state.wasHolding || state.isHolding
            state.isHolding = false
        }
    }

    /// A round is over. Leave to remove was given for one: what was held in this round before the leave was given is removed
    /// in the next.
    func endRound() {
        let outdated = state.withLock { state -> String? in
            state.wasHolding = false
            guard !state.isHolding else { return nil }
            state.isReleased = false
            defer { state.warning = nil }
            return state.warning
        }
        if let outdated { warnings.withdraw(outdated) }
    }

    /// Whether so many items may be removed.
    func admits(gone: Int, of known: Int) -> Bool {
        guard gone > Self.mostItems, gone * 100 > known * Self.mostPercent else { return true }
        let text =
            "\(gone) of \(known) items have vanished from the remote at once; 'yonder retry \(domainName)' applies it, "
            + "and 'yonder reimport' finds out whether they are there under other identifiers"
        let outdated: String?
        let isAdmitted: Bool
        (isAdmitted, outdated) = state.withLock { state in
            if state.isReleased { return (true, nil) }
            state.isHolding = true
            defer { state.warning = text }
            return (false, state.warning == text ? nil : state.warning)
        }
        if isAdmitted { return true }
        if let outdated { warnings.withdraw(outdated) }
        warnings.report(text)
        return false
    }

    /// Allows the removals that are held, also those of a running round. Does nothing when none are.
    func release() {
        state.withLock { if $0.isHolding || $0.wasHolding { $0.isReleased = true } }
    }
}
