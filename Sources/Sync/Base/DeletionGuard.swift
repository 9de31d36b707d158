import FileNames
import FileProvider
import Synchronization

/// Holds back a round of changes that would remove much of the replica at once: more often the disk or the account
/// behind the remote is missing than the items. While nearly everything is missing, no change is sent either.
///
/// What reads find missing one by one counts, too: a program that reads all files of a disk that is not mounted would remove
/// them all before the next round.
final class DeletionGuard: Sendable {
    struct Hold: Hashable {
        /// The number of missing items.
        var gone: Int
        /// The remote may be another one, or be empty for a while.
        var isOfNearlyAll: Bool

        init(gone: Int, isOfNearlyAll: Bool) {
            self.gone = gone
            self.isOfNearlyAll = isOfNearlyAll
        }

        /// As ``text``; `1` was written before there was a number.
        init?(_ text: String) {
            let words = text.split(separator: " ")
            guard let gone = words.first.flatMap({ Int($0) }) else { return nil }
            self.init(gone: gone, isOfNearlyAll: words.count > 1 || gone == 1)
        }

        /// For the database.
        var text: String { isOfNearlyAll ? "\(gone) all" : "\(gone)" }
    }

    private struct State {
        /// Of the round that runs, or ran last.
        var held: Hold?
        /// Of the round before the one that runs, as long as this one has not come as far.
        var heldBefore: Hold?
        var isReleased = false
        /// What is missing in the root, by ``RootCheck``: it lasts until that finds the root to be there.
        var heldByRoot: Hold?
        /// Leave was given although the root is not there: it lasts as long.
        var isRootReleased = false
        /// The items that were removed one by one since the last round that held nothing, with the number of items that went with
        /// each.
        var removed: [ItemIdentifier: Int] = [:]
        /// The warning about what is held.
        var warning: String?

        var removedSingly: Int { removed.values.reduce(0, +) }

        var holdsChanges: Bool { hold?.isOfNearlyAll ?? false }

        /// What is held now; nil after ``release()``.
        var hold: Hold? { Self.all([holdOfRounds, heldByRoot]) }

        /// What is held by rounds.
        var holdOfRounds: Hold? { isReleased ? nil : Self.all([held, heldBefore]) }

        private static func all(_ holds: [Hold?]) -> Hold? {
            let holds = holds.compactMap(\.self)
            return holds.map(\.gone).max().map { Hold(gone: $0, isOfNearlyAll: holds.contains(where: \.isOfNearlyAll)) }
        }
    }

    private let state = Mutex(State())
    private let domainName: String
    private let warnings: Warnings
    /// So many missing items, or fewer, begin no hold.
    static let mostItems = 100
    private static let mostPercent = 30
    private static let nearlyAllPercent = 90
    private let onChange: @Sendable (Hold?) -> Void

    /// - Parameters:
    ///   - hold: what was held when the domain was unmounted.
    ///   - onChange: called with what is held, when that has changed.
    init(
        domainName: String, warnings: Warnings, hold: Hold? = nil,
        onChange: @escaping @Sendable (Hold?) -> Void = { _ in }
    ) {
        self.domainName = domainName
        self.warnings = warnings
        self.onChange = onChange
        state.withLock { state in
            state.heldBefore = hold
            // Whether a round or a look at the root has found that is not stored: the next look ends it where the root is there.
            if hold?.isOfNearlyAll == true { state.heldByRoot = hold }
        }
    }

    /// Whether no change is to be sent: a disk that is not mounted on the server would take it, and hide it once it is
    /// mounted.
    var holdsChanges: Bool { state.withLock { $0.holdsChanges } }

    /// Whether changes are held because of the root.
    var isHeldByRoot: Bool { state.withLock { $0.heldByRoot != nil } }

    var holdsRemovals: Bool { state.withLock { $0.hold != nil } }

    /// What is held, and what the user can do about it; nil when nothing is.
    var warning: String? {
        let (hold, warning) = state.withLock { ($0.hold, $0.warning) }
        return hold.map { warning ?? text("\($0.gone)", isOfNearlyAll: $0.isOfNearlyAll) }
    }

    /// Changes the state, and tells when what is held has changed.
    private func change<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
        let (value, before, after) = state.withLock { state in
            let before = state.hold
            let value = body(&state)
            return (value, before, state.hold)
        }
        if before != after { onChange(after) }
        return value
    }

    func beginRound() {
        change { state in
            state.heldBefore = state.holdOfRounds
            state.held = nil
        }
    }

    /// A round is over. Leave to remove was given for one: what was held in this round before the leave was given is removed
    /// in the next.
    func endRound() {
        let outdated = change { state -> String? in
            state.heldBefore = nil
            guard state.held == nil else { return nil }
            (state.isReleased, state.removed) = (false, [:])
            guard state.heldByRoot == nil else { return nil }
            defer { state.warning = nil }
            return state.warning
        }
        if let outdated { warnings.withdraw(outdated) }
    }

    /// Whether so many items are missing that it is doubtful whether this is the remote at all.
    func isNearlyAll(gone: Int, of known: Int) -> Bool {
        let removed = state.withLock { $0.removedSingly }
        return Self.isNearlyAll(gone + removed, of: known + removed)
    }

    private static func isNearlyAll(_ gone: Int, of known: Int) -> Bool {
        gone > mostItems && gone * 100 >= known * nearlyAllPercent
    }

    /// Whether so many items may be removed. Once they are held, they are also held where more items are known by then.
    func admits(gone: Int, of known: Int) -> Bool {
        let before = state.withLock { $0 }
        let (gone, known) = (gone + before.removedSingly, known + before.removedSingly)
        let isStillHeld = before.hold.map { gone * 2 >= $0.gone } ?? false
        let isMuch = gone > Self.mostItems && (isStillHeld || gone * 100 > known * Self.mostPercent)
        // While this round is held, a small part of what is missing is not removed either.
        guard isMuch || before.held != nil && !before.isReleased else { return before.heldByRoot == nil }
        let isOfNearlyAll = Self.isNearlyAll(gone, of: known) || isStillHeld && before.holdsChanges
        let text = text("\(gone) of \(known)", isOfNearlyAll: isOfNearlyAll)
        let outdated: String?
        let isAdmitted: Bool
        (isAdmitted, outdated) = change { state in
            if state.isReleased { return (true, nil) }
            if let held = state.held, held.gone >= gone { return (false, nil) }
            state.held = Hold(gone: gone, isOfNearlyAll: isOfNearlyAll || state.held?.isOfNearlyAll ?? false)
            defer { state.warning = text }
            return (false, state.warning == text ? nil : state.warning)
        }
        if isAdmitted { return true }
        if let outdated { warnings.withdraw(outdated) }
        if let warning { warnings.report(warning) }
        return false
    }

    /// Nearly all is missing in the root: all changes are held until ``rootIsThere()``, whatever rounds find.
    ///
    /// - Returns: false where leave was given.
    func holdForRoot(gone: Int, of known: Int) -> Bool {
        let removed = state.withLock { $0.removedSingly }
        let (gone, known) = (gone + removed, known + removed)
        let text = text("\(gone) of \(known)", isOfNearlyAll: true)
        let isNew = change { state -> Bool? in
            if state.isReleased || state.isRootReleased { return nil }
            if state.heldByRoot == nil { state.heldByRoot = Hold(gone: gone, isOfNearlyAll: true) }
            guard state.warning == nil else { return false }
            state.warning = text
            return true
        }
        if isNew == true { warnings.report(text) }
        return isNew != nil
    }

    /// The root is not empty, or nothing was known in it.
    func rootIsThere() {
        let outdated = change { state -> String? in
            state.isRootReleased = false
            guard state.heldByRoot != nil else { return nil }
            state.heldByRoot = nil
            guard state.held == nil, state.heldBefore == nil else { return nil }
            defer { state.warning = nil }
            return state.warning
        }
        if let outdated { warnings.withdraw(outdated) }
    }

    private func text(_ items: String, isOfNearlyAll: Bool) -> String {
        "\(items) items have vanished from the remote at once\(isOfNearlyAll ? ", and no change is sent" : ""); "
            + "'yonder retry \(ShellWord.escaped(domainName))' applies it, "
            + "and 'yonder reimport' finds out whether they are there under other identifiers"
    }

    /// Whether an item may be removed that was looked up alone and is missing.
    ///
    /// - Parameters:
    ///   - gone: the number of items that go with it.
    ///   - known: the number of known items; asked for only where it matters.
    ///   - isKnown: whether an item is known; likewise.
    func admitsOne(
        _ identifier: ItemIdentifier, gone: Int, of known: () throws -> Int, isKnown: (ItemIdentifier) throws -> Bool
    ) rethrows -> Bool {
        let (isHolding, removed) = state.withLock { ($0.hold != nil, $0.removedSingly) }
        if isHolding { return false }
        if removed + gone > Self.mostItems {
            let known = try known()
            if (removed + gone) * 100 > (removed + known) * Self.mostPercent { try forgetReturned(isKnown) }
            guard admits(gone: gone, of: known) else { return false }
        }
        state.withLock { $0.removed[identifier] = gone }
        return true
    }

    /// Items that are known again were not removed: as a rule they were renamed.
    func forgetReturned(_ isKnown: (ItemIdentifier) throws -> Bool) rethrows {
        let returned = try state.withLock { Array($0.removed.keys) }.filter(isKnown)
        if !returned.isEmpty { state.withLock { state in for item in returned { state.removed[item] = nil } } }
    }

    /// Allows the removals that are held, also those of a running round. Does nothing when none are.
    func release() {
        change { state in
            // What the root holds is held by the next round as well, unless leave is given for that, too.
            if state.held != nil || state.heldBefore != nil || state.heldByRoot != nil { state.isReleased = true }
            guard state.heldByRoot != nil else { return }
            (state.heldByRoot, state.isRootReleased) = (nil, true)
        }
    }
}
