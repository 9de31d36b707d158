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
    public typealias Options = InMemoryOptions

    public var options: Options { remote.options }
    /// The calls that were made.
    public var log: CallLog { remote.log }
    /// The faults that calls run into.
    public var faults: FaultScript { remote.faults }
    let remote: InMemoryState
    private let state: Mutex<State>

    private struct State {
        var manager: (any FileProviderManager)?
        var isInvalidated = false
        var materializedNotices = 0
        var pendingNotices = 0
    }

    /// - Parameters:
    ///   - tree: the initial remote, for example that of another instance; nil for an empty one.
    ///   - manager: receives a signal after each change; see ``attach(_:)``.
    public init(
        options: Options = Options(), tree: RemoteTree? = nil, manager: (any FileProviderManager)? = nil
    ) {
        remote = InMemoryState(options: options, tree: tree)
        state = Mutex(State(manager: manager))
    }

    // MARK: - The remote

    /// Signals this manager after each change from now on.
    public func attach(_ manager: any FileProviderManager) {
        state.withLock { $0.manager = manager }
    }

    /// The attached manager, if any.
    public var manager: (any FileProviderManager)? { state.withLock { $0.manager } }

    /// The current state of the remote.
    public var tree: RemoteTree { remote.tree }

    /// Changes the remote atomically and signals the attached manager.
    @discardableResult
    public func change<Value: Sendable>(_ body: (inout RemoteTree) throws -> Value) rethrows -> Value {
        let value = try remote.change(body)
        manager?.signalEnumerator()
        return value
    }

    /// Changes the remote atomically without a signal.
    @discardableResult
    public func changeSilently<Value: Sendable>(_ body: (inout RemoteTree) throws -> Value) rethrows -> Value {
        try remote.change(body)
    }

    /// Whether the system has called `invalidate`.
    public var isInvalidated: Bool { state.withLock { $0.isInvalidated } }

    // MARK: - The provider

    public var features: ProviderFeatures {
        ProviderFeatures(
            partialContentFetching: options.partialContentFetching, changeFeed: options.changeFeed,
            writing: options.writing, trash: options.trash, conditionalWrites: options.writing,
            documentEnumeration: options.documentEnumeration, followsLocalSets: true,
            directoryVersionsCoverTrees: options.directoryVersionsCoverTrees,
            concurrentCalls: options.concurrentCalls)
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

    public func item(for identifier: ItemIdentifier, request: FileProviderRequest) async throws -> FileProviderItem {
        try await perform(ProviderCall(kind: .item, identifier: identifier, request: request)) { _ in
            let tree = tree
            guard let item = tree[identifier] else { throw FileProviderError.noSuchItem(identifier) }
            return options.directoryVersionsCoverTrees ? tree.covering(item) : item
        }
    }

    public func enumerator(
        for container: ItemIdentifier, request: FileProviderRequest
    ) throws -> any FileProviderEnumerator {
        try log.record(ProviderCall(kind: .enumerator, identifier: container, request: request)) {
            for case .fail(let error) in faults.effects(on: .enumerator, of: container) { throw error }
            switch container {
            case .trashContainer where !options.trash:
                throw FileProviderError(.featureUnsupported, "this remote has no trash")
            case .workingSet where !options.changeFeed:
                throw FileProviderError(.featureUnsupported, "this remote has no history")
            case _ where tree[container]?.kind == .file && !options.documentEnumeration:
                throw FileProviderError(.featureUnsupported, "a file is no container")
            default:
                return InMemoryEnumerator(remote: remote, container: container, request: request)
            }
        }
    }

    public func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        let call = ProviderCall(kind: .fetch, identifier: identifier, range: range, request: request)
        return try await perform(call) { effects in
            let fetch = ContentFetch(remote: remote, identifier: identifier, version: version, effects: effects)
            return try await fetch.run(range: range, into: sink)
        }
    }

    public func importDidFinish() async {
        try? await perform(ProviderCall(kind: .importDidFinish, identifier: .rootContainer)) { _ in }
    }

    func perform<Value>(
        _ call: ProviderCall, _ body: ([FaultScript.Effect]) async throws -> Value
    ) async throws -> Value {
        try await remote.perform(call, body)
    }
}
