import FileProvider
import Synchronization

/// The kinds of call that an in-memory provider tells apart.
public enum ProviderCallKind: String, Hashable, Sendable, CaseIterable {
    /// Looking one item up.
    case item
    /// Making an enumerator.
    case enumerator
    /// One page of a listing.
    case enumerate
    /// One batch of changes.
    case changes
    /// The present sync anchor.
    case anchor
    /// Fetching content.
    case fetch
    /// Making an item.
    case create
    /// Changing an item.
    case modify
    /// Deleting an item.
    case delete
    /// Asking for the room that there is.
    case quota
    /// Being told that everything was offered.
    case importDidFinish
}

/// One call to a provider, as it was made and how it ended.
public struct ProviderCall: Sendable {
    public enum Outcome: Sendable {
        case running
        case succeeded
        case failed(any Error)
    }

    /// How a change was meant.
    public enum Options: Hashable, Sendable {
        case create(CreateItemOptions)
        case modify(ModifyItemOptions)
        case delete(DeleteItemOptions)
    }

    public var kind: ProviderCallKind
    /// The item or container that it was about; for new items the template's identifier.
    public var identifier: ItemIdentifier
    /// For fetches: nil for everything.
    public var range: Range<Int64>?
    /// In whose name; nil where a provider is not told.
    public var request: FileProviderRequest?
    /// For changes: the name that the item was sent with.
    public var name: String?
    /// For changes: what was sent.
    public var fields: ItemFields?
    /// For changes: the version that they were based on.
    public var baseVersion: ItemVersion?
    /// For changes: how they were meant.
    public var options: Options?
    /// For changes with content: how many bytes it has.
    public var size: Int64?
    public var outcome = Outcome.running

    public var isRunning: Bool {
        if case .running = outcome { true } else { false }
    }

    /// Whether it ended because its task was cancelled.
    public var wasCancelled: Bool {
        guard case .failed(let error) = outcome else { return false }
        return error is CancellationError || (error as? FileProviderError)?.code == .userCancelled
    }
}

/// Every call that a provider got, in the order in which they came.
public final class CallLog: Sendable {
    private struct State {
        var calls: [ProviderCall] = []
        var running: [ProviderCallKind: Int] = [:]
        var peak: [ProviderCallKind: Int] = [:]
    }

    private let state = Mutex(State())

    public init() {}

    /// All calls so far.
    public var calls: [ProviderCall] { state.withLock { $0.calls } }

    /// The calls of a kind so far, those about one item when one is given.
    public func calls(of kind: ProviderCallKind, _ identifier: ItemIdentifier? = nil) -> [ProviderCall] {
        calls.filter { $0.kind == kind && (identifier == nil || $0.identifier == identifier) }
    }

    /// How many calls of a kind came so far.
    public func count(of kind: ProviderCallKind, _ identifier: ItemIdentifier? = nil) -> Int {
        calls(of: kind, identifier).count
    }

    /// How many calls of a kind were under way at once at the most.
    public func mostAtOnce(_ kind: ProviderCallKind) -> Int { state.withLock { $0.peak[kind] ?? 0 } }

    /// Forgets what was so far. Calls under way are not told of any more.
    public func clear() {
        state.withLock { state in
            state.calls = []
            state.peak = [:]
        }
    }

    /// Waits until a call of a kind has come for the `count`th time.
    ///
    /// - Returns: whether it came to be so in time.
    public func waits(
        for count: Int = 1, _ kind: ProviderCallKind, _ identifier: ItemIdentifier? = nil,
        within deadline: Duration = .seconds(10)
    ) async -> Bool {
        let end = ContinuousClock.now + deadline
        while self.count(of: kind, identifier) < count {
            guard ContinuousClock.now < end, !Task.isCancelled else { return false }
            try? await Task.sleep(for: .milliseconds(2))
        }
        return true
    }

    /// Makes a call with its beginning and its end written down.
    func record<Value>(
        _ call: ProviderCall, _ body: () async throws -> Value
    ) async throws -> Value {
        let index = begin(call)
        do {
            let value = try await body()
            end(index, call.kind, .succeeded)
            return value
        } catch {
            end(index, call.kind, .failed(error))
            throw error
        }
    }

    /// As `record`, for calls that do not wait.
    func record<Value>(_ call: ProviderCall, _ body: () throws -> Value) throws -> Value {
        let index = begin(call)
        do {
            let value = try body()
            end(index, call.kind, .succeeded)
            return value
        } catch {
            end(index, call.kind, .failed(error))
            throw error
        }
    }

    private func begin(_ call: ProviderCall) -> Int {
        state.withLock { state in
            state.calls.append(call)
            let running = (state.running[call.kind] ?? 0) + 1
            state.running[call.kind] = running
            state.peak[call.kind] = max(state.peak[call.kind] ?? 0, running)
            return state.calls.count - 1
        }
    }

    private func end(_ index: Int, _ kind: ProviderCallKind, _ outcome: ProviderCall.Outcome) {
        state.withLock { state in
            state.running[kind, default: 1] -= 1
            if state.calls.indices.contains(index), state.calls[index].kind == kind {
                state.calls[index].outcome = outcome
            }
        }
    }
}
