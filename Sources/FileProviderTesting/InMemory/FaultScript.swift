import FileProvider
import Synchronization

/// Faults of calls: rules that a test adds before or during calls.
///
/// All matching rules apply to a call, in the order in which they were added: delays and holds first, then failures
/// and invalid answers.
public final class FaultScript: Sendable {
    /// The effect of a rule.
    public enum Effect: Sendable {
        /// The call throws.
        case fail(any Error)
        /// A change with any of these fields throws, and is not applied.
        case failFields(ItemFields, any Error)
        /// The call is delayed.
        case delay(Duration)
        /// The call waits until the gate is open.
        case hold(Gate)
        /// The call is carried out, and its answer waits until the gate is open.
        case holdAnswer(Gate)
        /// A fetch or an upload waits at the gate after this number of bytes.
        case holdTransfer(after: Int64, Gate)
        /// A fetch writes its bytes when the gate is open, on a thread that does not learn of a cancellation, as in a blocking
        /// read.
        case blockFetch(Gate)
        /// A fetch or an upload throws after this number of bytes; an upload leaves the remote unchanged.
        case failTransfer(after: Int64, any Error)
        /// A fetch ends successfully after this number of bytes.
        case cutFetch(Int64)
        /// A fetch delivers this number of bytes more than the file has.
        case surplus(Int64)
        /// A fetch returns this content version.
        case contentVersion([UInt8])
        /// A page has this token; with nil, that of the request.
        case pageToken(FileProviderPage?)
        /// A page contains these additional items.
        case extraItems([FileProviderItem])
        /// A page says that these entries are left out.
        case omissions([String])
        /// Every page is the first page, with a new token each time.
        case samePageAgain
        /// A batch of changes declares more changes with an unchanged anchor.
        case sameAnchorMoreComing
        /// Every batch of changes is empty, has a new anchor and declares more changes.
        case endlessChanges
        /// Every batch of changes has another new file in the root, and declares more changes.
        case everNewChanges
        /// A batch of changes, or the current anchor, has this anchor.
        case anchor(SyncAnchor)
        /// A change is applied and the call throws: the response was lost.
        case applyThenFail(any Error)
        /// A change is refused and not applied.
        case refuse(reason: String)
        /// The remote stores other content and sets `shouldFetchContent`; with nil it only sets the flag.
        case shouldFetchContent(RemoteContent?)
        /// Fields are not stored, and the answer names them as still pending.
        case leavePending(ItemFields)
        /// The created or changed item gets this identifier.
        case answerIdentifier(ItemIdentifier)
    }

    private struct Rule {
        var id: Int
        var kind: ProviderCallKind
        var identifier: ItemIdentifier?
        var effect: Effect
        var skips: Int
        /// The number of remaining calls; nil for no limit.
        var times: Int?
    }

    private struct State {
        var rules: [Rule] = []
        var nextID = 0
    }

    private let state = Mutex(State())

    /// A script without rules.
    public init() {}

    /// Adds a rule.
    ///
    /// - Parameters:
    ///   - effect: what happens to the call.
    ///   - kind: the kind of call.
    ///   - identifier: the item or container; nil for all.
    ///   - skipping: the number of matching calls before the rule applies.
    ///   - times: the number of calls to which it applies; nil for no limit.
    public func add(
        _ effect: Effect, to kind: ProviderCallKind, of identifier: ItemIdentifier? = nil, skipping: Int = 0,
        times: Int? = nil
    ) {
        state.withLock { state in
            state.nextID += 1
            state.rules.append(
                Rule(
                    id: state.nextID, kind: kind, identifier: identifier, effect: effect, skips: skipping, times: times)
            )
        }
    }

    /// Calls fail with an error, by default once.
    public func fail(
        _ kind: ProviderCallKind, of identifier: ItemIdentifier? = nil, with error: any Error, skipping: Int = 0,
        times: Int? = 1
    ) {
        add(.fail(error), to: kind, of: identifier, skipping: skipping, times: times)
    }

    /// All calls of any kind fail with an error until ``clear()``.
    public func failEverything(with error: any Error) {
        for kind in ProviderCallKind.allCases { fail(kind, with: error, times: nil) }
    }

    /// Calls wait until the returned gate is opened.
    public func hold(
        _ kind: ProviderCallKind, of identifier: ItemIdentifier? = nil, skipping: Int = 0, times: Int? = nil,
        heedsCancellation: Bool = true
    ) -> Gate {
        let gate = Gate(heedsCancellation: heedsCancellation)
        add(.hold(gate), to: kind, of: identifier, skipping: skipping, times: times)
        return gate
    }

    /// Calls are carried out, and their answers wait until the returned gate is opened.
    public func holdAnswer(_ kind: ProviderCallKind, of identifier: ItemIdentifier? = nil, times: Int? = nil) -> Gate {
        let gate = Gate()
        add(.holdAnswer(gate), to: kind, of: identifier, times: times)
        return gate
    }

    /// Calls are delayed.
    public func delay(
        _ kind: ProviderCallKind, of identifier: ItemIdentifier? = nil, by duration: Duration, times: Int? = nil
    ) {
        add(.delay(duration), to: kind, of: identifier, times: times)
    }

    /// Removes all rules and opens all gates.
    public func clear() {
        let rules = state.withLock { exchange(&$0.rules, with: []) }
        for rule in rules {
            switch rule.effect {
            case .hold(let gate), .holdAnswer(let gate), .holdTransfer(_, let gate), .blockFetch(let gate): gate.open()
            default: break
            }
        }
    }

    /// The effects of the rules on a call. Decrements their counters.
    func effects(on kind: ProviderCallKind, of identifier: ItemIdentifier) -> [Effect] {
        state.withLock { state in
            var effects: [Effect] = []
            for index in state.rules.indices {
                let rule = state.rules[index]
                guard rule.kind == kind, rule.identifier == nil || rule.identifier == identifier, rule.times != 0 else {
                    continue
                }
                if rule.skips > 0 {
                    state.rules[index].skips -= 1
                    continue
                }
                state.rules[index].times = rule.times.map { $0 - 1 }
                effects.append(rule.effect)
            }
            return effects
        }
    }
}
