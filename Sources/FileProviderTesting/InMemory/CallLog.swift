import FileProvider
import Synchronization

/// The kinds of calls.
public enum ProviderCallKind: String, Hashable, Sendable, CaseIterable {
    /// `item(for:request:)`.
    case item
    /// `enumerator(for:request:)`.
    case enumerator
    /// One page of a listing.
    case enumerate
    /// One batch of changes.
    case changes
    /// The current sync anchor.
    case anchor
    /// Fetching content.
    case fetch
    /// Fetching the thumbnail of one file.
    case thumbnail
    /// `createItem`.
    case create
    /// `modifyItem`.
    case modify
    /// `deleteItem`.
    case delete
    /// `quota()`.
    case quota
    /// `importDidFinish()`.
    case importDidFinish
}

/// One call of a provider, with its result.
public struct ProviderCall: Sendable {
    /// The state of a call.
    public enum Outcome: Sendable {
        /// The call has not returned yet.
        case running
        /// The call has returned.
        case succeeded
        /// The call has thrown.
        case failed(any Error)
    }

    /// The options of a change.
    public enum Options: Hashable, Sendable {
        /// Those of a creation.
        case create(CreateItemOptions)
        /// Those of a modification.
        case modify(ModifyItemOptions)
        /// Those of a deletion.
        case delete(DeleteItemOptions)
    }

    /// The kind of call.
    public var kind: ProviderCallKind
    /// The item or container; for a creation the template's identifier.
    public var identifier: ItemIdentifier
    /// For a fetch: the range; nil for the whole file.
    public var range: Range<Int64>?
    /// The request; nil for a call without one.
    public var request: FileProviderRequest?
    /// For a change: the name of the item.
    public var name: String?
    /// For a change: the fields.
    public var fields: ItemFields?
    /// For a change: the base version.
    public var baseVersion: ItemVersion?
    /// For a change: the options.
    public var options: Options?
    /// For a change with contents: their size in bytes.
    public var size: Int64?
    /// The state of the call.
    public var outcome = Outcome.running

    /// Whether the call has not returned yet.
    public var isRunning: Bool {
        if case .running = outcome { true } else { false }
    }

    /// Whether the call was cancelled.
    public var wasCancelled: Bool {
        guard case .failed(let error) = outcome else { return false }
        return error is CancellationError || (error as? FileProviderError)?.code == .userCancelled
    }
}

/// The calls of a provider, in order.
public final class CallLog: Sendable {
    private struct State {
        var calls: [ProviderCall] = []
        var running: [ProviderCallKind: Int] = [:]
        var peak: [ProviderCallKind: Int] = [:]
    }

    private let state = Mutex(State())

    /// An empty log.
    public init() {}

    /// All calls so far.
    public var calls: [ProviderCall] { state.withLock { $0.calls } }

    /// The calls of a kind so far, optionally for one item.
    public func calls(of kind: ProviderCallKind, _ identifier: ItemIdentifier? = nil) -> [ProviderCall] {
        calls.filter { $0.kind == kind && (identifier == nil || $0.identifier == identifier) }
    }

    /// The number of calls of a kind so far, optionally for one item.
    public func count(of kind: ProviderCallKind, _ identifier: ItemIdentifier? = nil) -> Int {
        calls(of: kind, identifier).count
    }

    /// The maximum number of concurrent calls of a kind.
    public func mostAtOnce(_ kind: ProviderCallKind) -> Int { state.withLock { $0.peak[kind] ?? 0 } }

    /// Clears the log. The ends of running calls are not logged.
    public func clear() {
        state.withLock { state in
            state.calls = []
            state.peak = [:]
        }
    }

    /// Waits until `count` calls of a kind have been made.
    ///
    /// - Returns: false after a timeout.
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

    /// Logs the start and the end of a call.
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

    /// As above, for a synchronous call.
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
