import FUSE
import Synchronization
import Syscalls

/// A small file system in memory, written against `FileSystem` as any other would be, with switches for what a real one
/// does only sometimes: answering late, forgetting to answer, passing through.
final class MemoryFileSystem: FileSystem {
    /// What a node is made of.
    enum Content: Sendable {
        case bytes([UInt8])
        case target([UInt8])
        case children([FileName: NodeID])
        /// Spliced from a file.
        case file(OwnedDescriptor, size: UInt64)
        /// Handed over to the kernel.
        case backing(OwnedDescriptor, BackingID?, size: UInt64)
        /// Every read is parked until the test answers it.
        case parked(size: UInt64)
        /// No read is ever answered.
        case forgotten(size: UInt64)
    }

    struct Node: Sendable {
        var attributes: FileAttributes
        var content: Content
        var extendedAttributes: [FileName: [UInt8]] = [:]
    }

    /// The number of requests of each kind.
    struct Counts: Equatable, Sendable {
        var lookups = 0
        var attributes = 0
        var listings = 0
        var reads = 0
        var writes = 0
        var releases = 0
        var interrupts = 0
        var extendedAttributes = 0
    }

    /// A read that waits.
    struct ParkedRead: Sendable {
        var offset: Int64
        var count: Int
        var reply: ParkedReply<ReadReply>
    }

    struct State: Sendable {
        var nodes: [NodeID: Node] = [:]
        var lastNode: UInt64 = 1
        var counts = Counts()
        var parked: [ParkedRead] = []
        var parkedLookups: [ParkedReply<EntryReply>] = []
        /// Open files answer these.
        var openOptions: OpenOptions = [.keepCache]
        var lastCaller: Caller?
        /// Of the requests that set an extended attribute or make a file.
        var numbers: [RequestNumber?] = []
        /// Called on the thread that looks a name up, after it was found and before the answer.
        var onLookup: (@Sendable () -> Void)?
        /// Called on the thread that closes a file, before the answer.
        var onRelease: (@Sendable () -> Void)?
        /// Changes when the session ends are of no interest: the session is only borrowed.
        weak var session: Session?
    }

    let state = Mutex(State())

    /// - Parameter owner: whose the root is, and all that is added.
    init(owner: (user: UInt32, group: UInt32) = (0, 0)) {
        state.withLock { state in
            state.nodes[.root] = Node(
                attributes: FileAttributes(
                    node: .root, kind: .directory, permissions: 0o755, linkCount: 2, owner: owner.user,
                    group: owner.group),
                content: .children([:]))
        }
    }

    var counts: Counts { state.withLock { $0.counts } }

    // MARK: - Changes from outside, of which the kernel knows nothing

    /// Adds or replaces a name.
    @discardableResult
    func add(_ name: FileName, _ content: Content, to parent: NodeID = .root, permissions: UInt32 = 0o644) -> NodeID {
        state.withLock { state in
            let kind: FileKind =
                switch content {
                case .children: .directory
                case .target: .symbolicLink
                default: .regular
                }
            let owner = state.nodes[parent].map { ($0.attributes.owner, $0.attributes.group) } ?? (0, 0)
            return state.insert(
                name, into: parent, kind: kind, permissions: kind == .directory ? 0o755 : permissions,
                content: content, owner: owner.0, group: owner.1)
        }
    }

    func remove(_ name: FileName, from parent: NodeID = .root) {
        state.withLock { state in state.updateChildren(of: parent) { $0[name] = nil } }
    }

    /// Gives a file other bytes.
    func replace(_ node: NodeID, with bytes: [UInt8]) {
        state.withLock { $0.nodes[node]?.setBytes(bytes) }
    }

    func bytes(of node: NodeID) -> [UInt8]? {
        state.withLock { state in
            if case .bytes(let bytes) = state.nodes[node]?.content { bytes } else { nil }
        }
    }

    var hasParkedRead: Bool { state.withLock { !$0.parked.isEmpty } }

    /// The oldest parked read, if there is one.
    func takeParkedRead() -> ParkedRead? {
        state.withLock { $0.parked.isEmpty ? nil : $0.parked.removeFirst() }
    }
}

extension MemoryFileSystem.State {
    func child(_ name: FileName, of parent: NodeID) -> NodeID? {
        if case .children(let children) = nodes[parent]?.content { children[name] } else { nil }
    }

    func entry(_ node: NodeID) -> Entry? {
        nodes[node].map { Entry(attributes: $0.attributes) }
    }

    mutating func updateChildren(of parent: NodeID, _ body: (inout [FileName: NodeID]) -> Void) {
        guard case .children(var children) = nodes[parent]?.content else { return }
        body(&children)
        nodes[parent]?.content = .children(children)
        nodes[parent]?.attributes.modificationTime.seconds += 1
    }

    mutating func insert(
        _ name: FileName, into parent: NodeID, kind: FileKind, permissions: UInt32,
        content: MemoryFileSystem.Content, owner: UInt32, group: UInt32
    ) -> NodeID {
        lastNode += 1
        let node = NodeID(lastNode)
        var made = MemoryFileSystem.Node(
            attributes: FileAttributes(
                node: node, kind: kind, permissions: permissions, linkCount: kind == .directory ? 2 : 1, owner: owner,
                group: group),
            content: content)
        made.measure()
        nodes[node] = made
        updateChildren(of: parent) { $0[name] = node }
        return node
    }
}

extension MemoryFileSystem.Node {
    /// Brings the size in line with the content.
    mutating func measure() {
        let size: UInt64 =
            switch content {
            case .bytes(let bytes), .target(let bytes): UInt64(bytes.count)
            case .file(_, let size), .backing(_, _, let size), .parked(let size), .forgotten(let size): size
            case .children: 0
            }
        attributes.size = size
        attributes.blocks = (size + 511) / 512
    }

    mutating func setBytes(_ bytes: [UInt8]) {
        content = .bytes(bytes)
        attributes.modificationTime.seconds += 1
        measure()
    }
}
