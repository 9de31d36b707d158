import FileProvider
import FileProviderPaths
import FileProviderTesting
import Synchronization
import SystemPackage

/// A remote in memory that knows only paths, with the habits that real ones have.
final class MemoryPathRemote: PathRemote {
    struct Habits: Sendable {
        var hasSymbolicLinks = false
        var storesEverything = false
        /// Without strong tags symbolic links have none.
        var isTagStrong = true
        var hasIdentifiers = false
        /// As in a bucket: directories have none, and those of files are made of their bytes.
        var hasTagsOfContent = false
        /// As over SFTP, where a date that is set makes another tag.
        var datesMakeTags = false
        var listsTrees = false
        var listsHiddenNames = true
        /// How many entries a part of a listing has.
        var part = 1000
    }

    fileprivate struct Node {
        var kind: ItemKind
        var bytes: [UInt8] = []
        var tag: Int
        var number: Int
        var attributes = RemoteAttributes()
        var isUnsettled = false
    }

    private struct State {
        var nodes: [RemotePath: Node] = [.root: Node(kind: .directory, tag: 0, number: 0)]
        var clock = 0
        var calls: [String] = []
    }

    private let state = Mutex(State())
    let habits: Habits
    /// Waited for in the middle of a move, when it is done and not answered.
    let duringMove = Mutex<(@Sendable () async throws -> Void)?>(nil)
    /// Called before a move is done.
    let beforeMove = Mutex<(@Sendable () -> Void)?>(nil)
    /// Waited for when a listing was made and is not answered yet.
    let duringListing = Mutex<(@Sendable () async throws -> Void)?>(nil)
    /// Likewise in the middle of writing.
    let duringWrite = Mutex<(@Sendable () async throws -> Void)?>(nil)

    /// With which the next look-up fails.
    let lookupFailure = Mutex<FileProviderError?>(nil)

    /// The tokens with which a listing goes on, in a cycle without an end; empty for a listing that ends. Its parts have no
    /// entries.
    let cycle = Mutex<[String]>([])

    init(habits: Habits = Habits()) {
        self.habits = habits
    }

    /// The part of an endless listing that follows a token; nil where listings end.
    private func endless(after token: [UInt8]?) -> [UInt8]? {
        let tokens = cycle.withLock { $0.map { Array($0.utf8) } }
        guard !tokens.isEmpty else { return nil }
        let index = token.flatMap { tokens.firstIndex(of: $0) } ?? tokens.count - 1
        return tokens[(index + 1) % tokens.count]
    }

    var traits: RemoteTraits {
        var traits = RemoteTraits()
        traits.checksConditions = true
        traits.hasSymbolicLinks = habits.hasSymbolicLinks
        traits.storesModificationDates = habits.storesEverything
        traits.storesPermissions = habits.storesEverything
        traits.storesExtendedAttributes = habits.storesEverything
        traits.listsTrees = habits.listsTrees
        traits.tagsAreOfContent = habits.hasTagsOfContent
        traits.datesMakeTags = habits.datesMakeTags
        traits.listsHiddenNames = habits.listsHiddenNames
        return traits
    }

    /// The calls up to now, by name and path, and none from then on.
    func takeCalls() -> [String] {
        state.withLock { state in
            defer { state.calls = [] }
            return state.calls
        }
    }

    // MARK: - Behind the provider's back

    func change(_ body: (inout Contents) throws -> Void) rethrows {
        try state.withLock { state in
            var contents = Contents(nodes: state.nodes, clock: state.clock)
            try body(&contents)
            (state.nodes, state.clock) = (contents.nodes, contents.clock)
        }
    }

    struct Contents {
        fileprivate var nodes: [RemotePath: Node]
        fileprivate var clock: Int

        mutating func make(_ path: RemotePath, kind: ItemKind, _ bytes: [UInt8] = []) {
            clock += 1
            nodes[path] = Node(kind: kind, bytes: bytes, tag: clock, number: nodes[path]?.number ?? clock)
        }

        mutating func setUnsettled(_ path: RemotePath, _ isUnsettled: Bool) {
            nodes[path]?.isUnsettled = isUnsettled
        }

        mutating func makeLink(_ path: RemotePath, to target: String) {
            make(path, kind: .symbolicLink)
            nodes[path]?.attributes.symbolicLinkTarget = target
        }

        /// With its tag, as where times are kept and tell contents apart.
        mutating func copy(_ path: RemotePath, to newPath: RemotePath) {
            nodes[newPath] = nodes[path]
        }

        /// As where two files of one length were written in one second.
        mutating func makeAlike(_ path: RemotePath, _ other: RemotePath) {
            if let tag = nodes[path]?.tag { nodes[other]?.tag = tag }
        }

        mutating func setDate(_ path: RemotePath, _ date: FileTimestamp) {
            nodes[path]?.attributes.contentModificationDate = date
        }

        mutating func move(_ path: RemotePath, to newPath: RemotePath) {
            let below = nodes.keys.filter { ($0 == path || $0.isBelow(path)) }
            for old in below {
                nodes[RemotePath(newPath.names + old.names.dropFirst(path.names.count))] = nodes.removeValue(
                    forKey: old)
            }
        }

        mutating func delete(_ path: RemotePath) {
            for old in nodes.keys.filter({ ($0 == path || $0.isBelow(path)) }) { nodes[old] = nil }
        }
    }

    /// The names in a directory, sorted.
    func names(in path: RemotePath) -> [String] {
        state.withLock { $0.nodes.keys.filter { !$0.names.isEmpty && $0.parent == path }.compactMap(\.name).sorted() }
    }

    // MARK: - The remote

    private func call<Value>(_ name: String, _ path: RemotePath, _ body: (inout State) throws -> Value) rethrows
        -> Value
    {
        try state.withLock { state in
            state.calls.append(name + " /" + path.names.joined(separator: "/"))
            return try body(&state)
        }
    }

    private func tag(of node: Node) -> [UInt8] {
        if node.kind == .symbolicLink, !habits.isTagStrong { return [] }
        guard habits.hasTagsOfContent else { return Array("\(node.tag)".utf8) }
        return node.kind == .directory ? [] : Array("of \(node.bytes)".utf8)
    }

    private func entry(_ path: RemotePath, _ node: Node) -> RemoteEntry {
        var entry = RemoteEntry(
            name: path.name ?? "", kind: node.kind, tag: tag(of: node), isTagStrong: habits.isTagStrong,
            stableIdentifier: habits.hasIdentifiers ? "\(node.number)" : nil,
            size: node.kind == .file ? Int64(node.bytes.count) : nil, attributes: node.attributes)
        entry.isTagUnsettled = node.isUnsettled
        return entry
    }

    private static func missing(_ path: RemotePath) -> FileProviderError {
        FileProviderError(.noSuchItem, "nothing at '\(path.names.joined(separator: "/"))'")
    }

    func entry(at path: RemotePath) async throws -> RemoteEntry {
        let failure = lookupFailure.withLock { failure in
            defer { failure = nil }
            return failure
        }
        if let failure { throw failure }
        return try call("entry", path) { state in
            guard let node = state.nodes[path] else { throw Self.missing(path) }
            return entry(path, node)
        }
    }

    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        let listing = try call("entries", path) { state in
            guard state.nodes[path]?.kind == .directory else { throw Self.missing(path) }
            if let next = endless(after: token) { return RemoteListing(entries: [], next: next) }
            let all = state.nodes.filter { $0.key.names.count == path.names.count + 1 && $0.key.parent == path }
                .filter { habits.listsHiddenNames || $0.key.name?.utf8.first != UInt8(ascii: ".") }
                .sorted { ($0.key.name ?? "").utf8.lexicographicallyPrecedes(($1.key.name ?? "").utf8) }
            let rest = all.drop { pair in
                token.map { !$0.lexicographicallyPrecedes(Array((pair.key.name ?? "").utf8)) } ?? false
            }
            let part = rest.prefix(habits.part)
            return RemoteListing(
                entries: part.map { entry($0.key, $0.value) },
                next: part.count < rest.count ? part.last?.key.name.map { Array($0.utf8) } : nil)
        }
        try await duringListing.withLock { hook in
            defer { hook = nil }
            return hook
        }?()
        return listing
    }

    func tree(below path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteTreeListing {
        try call("tree", path) { state in
            guard state.nodes[path]?.kind == .directory else { throw Self.missing(path) }
            if let next = endless(after: token) { return RemoteTreeListing(entries: [], next: next) }
            let below = state.nodes.filter { $0.key != path && $0.key.isBelow(path) }
            return RemoteTreeListing(entries: below.map { ($0.key.parent, entry($0.key, $0.value)) })
        }
    }

    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        let node = try call("read", path) { state in
            guard let node = state.nodes[path], node.kind == .file else { throw Self.missing(path) }
            return node
        }
        let (present, bytes) = (entry(path, node), node.bytes)
        guard tag == nil || tag == present.tag else { throw FileProviderError(.versionNoLongerAvailable) }
        let wanted = (range ?? 0..<Int64(bytes.count)).clamped(to: 0..<Int64(bytes.count))
        var offset = wanted.lowerBound
        while offset < wanted.upperBound {
            try Task.checkCancellation()
            let end = min(offset + 65_536, wanted.upperBound)
            try sink.write(Array(bytes[Int(offset)..<Int(end)]), at: offset)
            offset = end
        }
        return present
    }

    private static func check(_ condition: RemoteCondition, _ present: RemoteEntry?) throws {
        switch condition {
        case .always, .empty: return
        case .absent: if let present { throw RemoteConditionFailure(present: present) }
        case .unchanged(let tag):
            guard let present, present.tag == tag else { throw RemoteConditionFailure(present: present) }
        }
    }

    private func put(
        _ name: String, _ path: RemotePath, _ kind: ItemKind, _ bytes: [UInt8], _ attributes: RemoteAttributes,
        if condition: RemoteCondition
    ) throws -> RemoteEntry {
        try call(name, path) { state in
            let old = state.nodes[path]
            try Self.check(condition, old.map { entry(path, $0) })
            guard state.nodes[path.parent]?.kind == .directory else { throw Self.missing(path.parent) }
            state.clock += 1
            var node = Node(kind: kind, bytes: bytes, tag: state.clock, number: old?.number ?? state.clock)
            if habits.storesEverything { node.attributes = old?.attributes.merged(with: attributes) ?? attributes }
            if kind == .symbolicLink { node.attributes.symbolicLinkTarget = attributes.symbolicLinkTarget }
            state.nodes[path] = node
            return entry(path, node)
        }
    }

    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        let bytes = try contents.read(at: 0, count: Int(contents.size))
        let written = try put("write", path, .file, bytes, attributes, if: condition)
        try await duringWrite.withLock { $0 }?()
        return written
    }

    func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        try put("makeDirectory", path, .directory, [], attributes, if: .absent)
    }

    func makeSymbolicLink(
        at path: RemotePath, to target: String, attributes: RemoteAttributes
    ) async throws -> RemoteEntry {
        var attributes = attributes
        attributes.symbolicLinkTarget = target
        return try put("makeSymbolicLink", path, .symbolicLink, [], attributes, if: .absent)
    }

    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        beforeMove.withLock { $0 }?()
        let moved = try call("move", path) { state in
            guard state.nodes[path] != nil else { throw Self.missing(path) }
            guard state.nodes[newPath.parent]?.kind == .directory else { throw Self.missing(newPath.parent) }
            if let there = state.nodes[newPath] { throw RemoteConditionFailure(present: entry(newPath, there)) }
            var contents = Contents(nodes: state.nodes, clock: state.clock)
            contents.move(path, to: newPath)
            state.nodes = contents.nodes
            guard let node = state.nodes[newPath] else { throw Self.missing(newPath) }
            return entry(newPath, node)
        }
        try await duringMove.withLock { $0 }?()
        return moved
    }

    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        try call("set", path) { state in
            guard var node = state.nodes[path] else { throw Self.missing(path) }
            if habits.storesEverything { node.attributes = node.attributes.merged(with: attributes) }
            if habits.datesMakeTags, attributes.contentModificationDate != nil {
                state.clock += 1
                node.tag = state.clock
            }
            state.nodes[path] = node
            return (entry(path, node), [])
        }
    }

    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try call("delete", path) { state in
            guard let node = state.nodes[path] else { return }
            try Self.check(condition, entry(path, node))
            var contents = Contents(nodes: state.nodes, clock: state.clock)
            contents.delete(path)
            state.nodes = contents.nodes
        }
    }
}

extension RemoteAttributes {
    fileprivate func merged(with other: RemoteAttributes) -> RemoteAttributes {
        RemoteAttributes(
            contentModificationDate: other.contentModificationDate ?? contentModificationDate,
            creationDate: other.creationDate ?? creationDate, permissions: other.permissions ?? permissions,
            symbolicLinkTarget: other.symbolicLinkTarget ?? symbolicLinkTarget,
            extendedAttributes: other.extendedAttributes ?? extendedAttributes)
    }
}

/// Such a remote as the conformance suite wants it.
struct MemoryRemoteUnderTest: RemoteUnderTest {
    let remote: MemoryPathRemote
    let domain = FileProviderDomain(identifier: "test", source: "memory:")
    let stateDirectory: FilePath = "/nonexistent"

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        PathAddressedProvider(remote: remote, manager: manager)
    }

    private static func path(_ text: String) -> RemotePath {
        RemotePath(text.split(separator: "/").map(String.init))
    }

    func makeDirectory(_ path: String) async throws {
        remote.change { $0.make(Self.path(path), kind: .directory) }
    }

    func write(_ bytes: [UInt8], to path: String) async throws {
        remote.change { $0.make(Self.path(path), kind: .file, bytes) }
    }

    func rename(_ path: String, to newPath: String) async throws {
        remote.change { $0.move(Self.path(path), to: Self.path(newPath)) }
    }

    func delete(_ path: String) async throws {
        remote.change { $0.delete(Self.path(path)) }
    }

    func dispose() async {}
}
