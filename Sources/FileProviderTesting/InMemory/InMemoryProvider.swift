import FileProvider
import Synchronization

/// A remote in memory with its provider, for tests of the code that uses a provider.
///
/// A test changes the remote with ``change(_:)``, makes calls fail or wait with ``faults``, and inspects the calls in
/// ``log``. All of them may be used from any thread, also during calls.
///
///     let provider = InMemoryProvider()
///     let file = provider.change { $0.addFile("a.txt", content: .bytes([1, 2, 3])) }
///     let item = try await provider.item(for: file, request: FileProviderRequest(reason: .lookup))
public final class InMemoryProvider: FileProviderReplicatedExtension {
    /// The behaviour of the remote.
    public let options: Options
    /// The calls that were made.
    public let log = CallLog()
    /// The faults of calls.
    public let faults = FaultScript()
    private let state: Mutex<State>

    private struct State {
        var tree: RemoteTree
        var manager: (any FileProviderManager)?
        var isInvalidated = false
        var materializedNotices = 0
        var pendingNotices = 0
    }

    /// A remote with its provider.
    ///
    /// - Parameters:
    ///   - options: the behaviour of the remote.
    ///   - tree: the initial remote, for example that of another instance; nil for an empty one.
    ///   - manager: receives a signal after each change; see ``attach(_:)``.
    public init(
        options: Options = Options(), tree: RemoteTree? = nil, manager: (any FileProviderManager)? = nil
    ) {
        self.options = options
        var tree = tree ?? RemoteTree()
        tree.hasTrash = options.trash
        state = Mutex(State(tree: tree, manager: manager))
    }

    // MARK: - The remote

    /// Signals this manager after each change from now on.
    public func attach(_ manager: any FileProviderManager) {
        state.withLock { $0.manager = manager }
    }

    /// The attached manager, if any.
    public var manager: (any FileProviderManager)? { state.withLock { $0.manager } }

    /// The current state of the remote.
    public var tree: RemoteTree { state.withLock { $0.tree } }

    /// Changes the remote atomically and signals the attached manager.
    @discardableResult
    public func change<Value: Sendable>(_ body: (inout RemoteTree) throws -> Value) rethrows -> Value {
        let value = try changeSilently(body)
        manager?.signalEnumerator()
        return value
    }

    /// Changes the remote atomically without a signal.
    @discardableResult
    public func changeSilently<Value: Sendable>(_ body: (inout RemoteTree) throws -> Value) rethrows -> Value {
        try state.withLock { try body(&$0.tree) }
    }

    /// Whether the system has called `invalidate`.
    public var isInvalidated: Bool { state.withLock { $0.isInvalidated } }

    // MARK: - The provider

    public var features: ProviderFeatures {
        var features = ProviderFeatures(
            partialContentFetching: options.partialContentFetching, changeFeed: options.changeFeed,
            writing: options.writing, trash: options.trash, conditionalWrites: options.writing,
            documentEnumeration: options.documentEnumeration, followsLocalSets: options.followsLocalSets,
            directoryVersionsCoverTrees: options.directoryVersionsCoverTrees,
            concurrentCalls: options.concurrentCalls)
        features.contentVersionsMayRepeat = options.contentVersionsMayRepeat
        features.isAskedBesideCalls = options.isAskedBesideCalls
        features.thumbnails = options.thumbnails != nil
        features.keepsModificationDates = options.holds.contains(.contentModificationDate)
        return features
    }

    /// The number of calls of `materializedItemsDidChange`.
    public var materializedNotices: Int { state.withLock { $0.materializedNotices } }

    /// The number of calls of `pendingItemsDidChange`.
    public var pendingNotices: Int { state.withLock { $0.pendingNotices } }

    public func materializedItemsDidChange() async { state.withLock { $0.materializedNotices += 1 } }

    public func pendingItemsDidChange() async { state.withLock { $0.pendingNotices += 1 } }

    public func quota() async throws -> RemoteQuota? {
        guard let quota = options.quota else { return nil }
        return try await perform(ProviderCall(kind: .quota, identifier: .rootContainer)) { _ in quota }
    }

    public func invalidate() async {
        state.withLock { $0.isInvalidated = true }
    }

    public func importDidFinish() async {
        try? await perform(ProviderCall(kind: .importDidFinish, identifier: .rootContainer)) { _ in }
    }

    /// Logs a call and applies the scripted faults: delays, holds and failures here, all others in `body`.
    func perform<Value>(
        _ call: ProviderCall, _ body: ([FaultScript.Effect]) async throws -> Value
    ) async throws -> Value {
        try await log.record(call) {
            let effects = faults.effects(on: call.kind, of: call.identifier)
            for effect in effects {
                switch effect {
                case .delay(let duration): try await Task.sleep(for: duration)
                case .hold(let gate): try await gate.pass()
                default: break
                }
            }
            for case .fail(let error) in effects { throw error }
            try Task.checkCancellation()
            let answer = try await body(effects)
            for case .holdAnswer(let gate) in effects { try await gate.pass() }
            return answer
        }
    }
}
