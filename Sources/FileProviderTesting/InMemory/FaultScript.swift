import FileProvider
import Synchronization

/// What goes wrong with which calls: rules that a test writes, before and while the provider is used.
///
/// A call is met by every rule that fits it, in the order in which they were added: it is delayed and held first, and
/// then fails or answers something odd.
public final class FaultScript: Sendable {
    /// What happens to a call.
    public enum Effect: Sendable {
        /// It throws.
        case fail(any Error)
        /// It takes longer.
        case delay(Duration)
        /// It waits until the gate is open.
        case hold(Gate)
        /// A fetch waits at the gate once it has given so many bytes.
        case holdFetch(after: Int64, Gate)
        /// A fetch throws once it has given so many bytes.
        case failFetch(after: Int64, any Error)
        /// A fetch gives no more than so many bytes, and is content with that.
        case cutFetch(Int64)
        /// A fetch gives so many bytes more than the file has.
        case surplus(Int64)
        /// A fetch says that the bytes it gave are of this content version.
        case contentVersion([UInt8])
        /// A page's token is the one that it was asked with, or this one.
        case pageToken(FileProviderPage?)
        /// A page has these items beside its own.
        case extraItems([FileProviderItem])
        /// Every page is the first one, under a new token each time.
        case samePageAgain
        /// A batch of changes says that more are coming, from the anchor that it was asked with on.
        case sameAnchorMoreComing
        /// A batch of changes, or the present anchor, is this one.
        case anchor(SyncAnchor)
        /// A change is carried out, and the call throws all the same: the answer was lost.
        case applyThenFail(any Error)
        /// A change is refused, and not carried out.
        case refuse(reason: String)
        /// The remote keeps other content than was sent, and says that it is to be fetched; with nil it only says so.
        case shouldFetchContent(RemoteContent?)
        /// What was made or changed has this identifier from then on.
        case answerIdentifier(ItemIdentifier)
        /// An upload waits at the gate once it has taken so many bytes.
        case holdUpload(after: Int64, Gate)
        /// An upload throws once it has taken so many bytes. The remote is left as it was.
        case failUpload(after: Int64, any Error)
    }

    private struct Rule {
        var id: Int
        var kind: ProviderCallKind
        var identifier: ItemIdentifier?
        var effect: Effect
        var skips: Int
        /// How many calls it still meets; nil for all.
        var times: Int?
    }

    private struct State {
        var rules: [Rule] = []
        var nextID = 0
    }

    private let state = Mutex(State())

    public init() {}

    /// Adds a rule.
    ///
    /// - Parameters:
    ///   - identifier: the item or container; nil for all.
    ///   - skipping: how many calls that it fits go well before it begins.
    ///   - times: how many calls it meets then; nil for all.
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

    /// Calls fail with an error, once unless said otherwise.
    public func fail(
        _ kind: ProviderCallKind, of identifier: ItemIdentifier? = nil, with error: any Error, skipping: Int = 0,
        times: Int? = 1
    ) {
        add(.fail(error), to: kind, of: identifier, skipping: skipping, times: times)
    }

    /// Every call fails with an error, whatever it is, until ``clear()``.
    public func failEverything(with error: any Error) {
        for kind in ProviderCallKind.allCases { fail(kind, with: error, times: nil) }
    }

    /// Calls wait until the gate that is returned is opened.
    public func hold(
        _ kind: ProviderCallKind, of identifier: ItemIdentifier? = nil, skipping: Int = 0, times: Int? = nil,
        heedsCancellation: Bool = true
    ) -> Gate {
        let gate = Gate(heedsCancellation: heedsCancellation)
        add(.hold(gate), to: kind, of: identifier, skipping: skipping, times: times)
        return gate
    }

    /// Calls take longer.
    public func delay(
        _ kind: ProviderCallKind, of identifier: ItemIdentifier? = nil, by duration: Duration, times: Int? = nil
    ) {
        add(.delay(duration), to: kind, of: identifier, times: times)
    }

    /// Everything goes well again, and what was held goes on.
    public func clear() {
        let rules = state.withLock { state in
            defer { state.rules = [] }
            return state.rules
        }
        for rule in rules {
            switch rule.effect {
            case .hold(let gate), .holdFetch(_, let gate), .holdUpload(_, let gate): gate.open()
            default: break
            }
        }
    }

    /// What happens to this call. Uses the rules up that it meets.
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
