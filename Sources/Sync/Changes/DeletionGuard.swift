import Synchronization

/// Holds back a round of changes that would remove much of the replica at once: more often the disk or the account
/// behind the remote is missing than the items. While nearly everything is missing, no change is sent either.
final class DeletionGuard: Sendable {
    /// What a round would have removed that was held.
    private enum Held: Comparable {
        case nothing
        case much
        /// The remote may be another one, or be empty for a while.
        case nearlyAll
    }

    private struct State {
        /// Of the round that runs, or ran last.
        var held = Held.nothing
        /// Of the round before the one that runs, as long as this one has not come as far.
        var wasHeld = Held.nothing
        var isReleased = false
        /// The warning about the round that is held.
        var warning: String?

        var heldLately: Held { max(held, wasHeld) }
        var holdsChanges: Bool { !isReleased && heldLately == .nearlyAll }
    }

    private let state = Mutex(State())
    private let domainName: String
    private let warnings: Warnings
    private static let mostItems = 100
    private static let mostPercent = 30
    private static let nearlyAllPercent = 90
    private let onChange: @Sendable (_ holdsChanges: Bool) -> Void

    /// - Parameters:
    ///   - holdsChanges: whether changes were held when the domain was unmounted.
    ///   - onChange: called when changes begin to be held, and when they need not be any more.
    init(
        domainName: String, warnings: Warnings, holdsChanges: Bool = false,
        onChange: @escaping @Sendable (Bool) -> Void = { _ in }
    ) {
        self.domainName = domainName
        self.warnings = warnings
        self.onChange = onChange
        if holdsChanges { state.withLock { $0.wasHeld = .nearlyAll } }
    }

    /// Whether no change is to be sent: a disk that is not mounted on the server would take it, and hide it once it is
    /// mounted.
    var holdsChanges: Bool { state.withLock { $0.holdsChanges } }

    /// What is held, and what the user can do about it; nil when nothing is.
    var warning: String? { state.withLock { $0.isReleased ? nil : $0.warning } }

    /// Changes the state, and tells when changes begin or end to be held.
    private func change<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
        let (value, before, after) = state.withLock { state in
            let before = state.holdsChanges
            let value = body(&state)
            return (value, before, state.holdsChanges)
        }
        if before != after { onChange(after) }
        return value
    }

    func beginRound() {
        change { state in
            (state.held, state.wasHeld) = (.nothing, state.heldLately)
        }
    }

    /// A round is over. Leave to remove was given for one: what was held in this round before the leave was given is removed
    /// in the next.
    func endRound() {
        let outdated = change { state -> String? in
            state.wasHeld = .nothing
            guard state.held == .nothing else { return nil }
            state.isReleased = false
            defer { state.warning = nil }
            return state.warning
        }
        if let outdated { warnings.withdraw(outdated) }
    }

    /// Whether so many items are missing that it is doubtful whether this is the remote at all.
    func isNearlyAll(gone: Int, of known: Int) -> Bool {
        gone > Self.mostItems && gone * 100 >= known * Self.nearlyAllPercent
    }

    /// Whether so many items may be removed.
    func admits(gone: Int, of known: Int) -> Bool {
        guard gone > Self.mostItems, gone * 100 > known * Self.mostPercent else { return true }
        let isOfNearlyAll = isNearlyAll(gone: gone, of: known)
        let text =
            "\(gone) of \(known) items have vanished from the remote at once\(isOfNearlyAll ? ", and no change is sent" : ""); "
            + "'yonder retry \(domainName)' applies it, "
            + "and 'yonder reimport' finds out whether they are there under other identifiers"
        let outdated: String?
        let isAdmitted: Bool
        (isAdmitted, outdated) = change { state in
            if state.isReleased { return (true, nil) }
            state.held = max(state.held, isOfNearlyAll ? .nearlyAll : .much)
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
        change { if $0.heldLately > .nothing { $0.isReleased = true } }
    }
}
