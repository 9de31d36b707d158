import FileProvider
import Synchronization

/// A remote in memory, and the provider that serves it: for tests of everything that stands above a provider.
///
/// A test changes the remote with ``change(_:)``, lets calls fail and wait with ``faults`` and looks at what was called
/// in ``log``. All of it may be done from any thread, also while calls are under way.
public final class InMemoryProvider: FileProviderReplicatedExtension {
    /// How the remote behaves.
    public struct Options: Hashable, Sendable {
        public var partialContentFetching = true
        public var changeFeed = true
        /// How many items a page has at the most; nil for as many as the system suggests.
        public var pageSize: Int?
        /// How many bytes a fetch gives at once.
        public var chunkSize: Int64 = 1 << 20
        /// How long each of these takes.
        public var chunkDelay = Duration.zero
        /// Whether a file's changes can be followed.
        public var documentEnumeration = false
        public var concurrentCalls = 16
        /// Whether items can be created, changed and deleted.
        public var writing = true
        /// Whether items can be trashed.
        public var trash = false
        /// Whether a call that would give two items of a directory one name fails with `filenameCollision`. What a test
        /// does to the tree itself is not held to it.
        public var uniqueNames = true
        /// The fields that the remote can keep. Others come back as still pending. Where a new item is, how it is called
        /// and what it contains is always kept.
        public var holds = ItemFields(rawValue: .max)
        /// Whether an upload of the bytes that the remote has already is no conflict, whatever version it is based on:
        /// so a call is recognized that is made again because its answer was lost.
        public var recognizesEqualUploads = true
        /// How many bytes an upload takes at once.
        public var uploadChunkSize: Int64 = 1 << 20
        /// Whether a directory's content version changes with anything below it.
        public var directoryVersionsCoverTrees = false
        /// How much room there is, when the remote says so.
        public var quota: RemoteQuota?

        public init() {}
    }

    public let options: Options
    public let log = CallLog()
    public let faults = FaultScript()
    private let state: Mutex<State>

    private struct State {
        var tree: RemoteTree
        var manager: (any FileProviderManager)?
        var isInvalidated = false
        var materializedNotices = 0
        var pendingNotices = 0
    }

    /// - Parameters:
    ///   - tree: the remote as another instance left it; an empty one without.
    ///   - manager: is told of changes, when there is one. See ``attach(_:)``.
    public init(
        options: Options = Options(), tree: RemoteTree? = nil, manager: (any FileProviderManager)? = nil
    ) {
        self.options = options
        var tree = tree ?? RemoteTree()
        tree.hasTrash = options.trash
        state = Mutex(State(tree: tree, manager: manager))
    }

    // MARK: - The remote

    /// Tells a system of the changes to the remote from now on: that there are some, not which.
    public func attach(_ manager: any FileProviderManager) {
        state.withLock { $0.manager = manager }
    }

    /// The system's side, when there is one.
    public var manager: (any FileProviderManager)? { state.withLock { $0.manager } }

    /// The remote as it is now.
    public var tree: RemoteTree { state.withLock { $0.tree } }

    /// Changes the remote, all at once, and signals the manager that is attached.
    @discardableResult
    public func change<Value: Sendable>(_ body: (inout RemoteTree) throws -> Value) rethrows -> Value {
        let (value, manager) = try state.withLock { state in (try body(&state.tree), state.manager) }
        manager?.signalEnumerator()
        return value
    }

    /// Changes the remote without telling anybody.
    @discardableResult
    public func changeSilently<Value: Sendable>(_ body: (inout RemoteTree) throws -> Value) rethrows -> Value {
        try state.withLock { state in try body(&state.tree) }
    }

    /// Whether the system has said that it is done.
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

    /// How often the system has said that the set of materialized items changed.
    public var materializedNotices: Int { state.withLock { $0.materializedNotices } }

    /// How often the system has said that the set of pending items changed.
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
                return InMemoryEnumerator(provider: self, container: container, request: request)
            }
        }
    }

    public func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        let call = ProviderCall(kind: .fetch, identifier: identifier, range: range, request: request)
        return try await perform(call) { effects in
            let fetch = ContentFetch(provider: self, identifier: identifier, version: version, effects: effects)
            return try await fetch.run(range: range, into: sink)
        }
    }

    public func importDidFinish() async {
        try? await perform(ProviderCall(kind: .importDidFinish, identifier: .rootContainer)) { _ in }
    }

    /// Makes a call as the log and the script want it. What is left of the script is for the body.
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
            return try await body(effects)
        }
    }
}
