import FileProvider

/// The items of an in-memory remote, with their history: a value, changed as somebody else would change the remote.
///
/// Names are not looked at: a remote may well have two items of one name, or names that no file system takes.
public struct RemoteTree: Sendable {
    struct Node {
        var item: FileProviderItem
        var content: RemoteContent
        /// The place in listings: items come in the order in which they were made.
        var serial: Int
    }

    var nodes: [ItemIdentifier: Node] = [:]
    var children: [ItemIdentifier: [ItemIdentifier]] = [:]
    private var counter = 0
    /// Which items changed, oldest first.
    var history: [ItemIdentifier] = []
    /// Anchors of another life have expired.
    private var life = 1
    /// What became of templates: who offers one again gets the item that was made.
    var made: [ItemIdentifier: ItemIdentifier] = [:]
    /// Whether new items can be trashed.
    var hasTrash = false
    /// The changes that came through a provider and were carried out, oldest first: each upload and each new item
    /// once. An item that was there already, and was recognized, is not among them.
    public internal(set) var applied: [AppliedChange] = []

    init() {
        let root = FileProviderItem(
            itemIdentifier: .rootContainer, parentItemIdentifier: .rootContainer, filename: "/", kind: .directory,
            itemVersion: ItemVersion(contentVersion: "c0", metadataVersion: "m0"))
        nodes[.rootContainer] = Node(item: root, content: .bytes([]), serial: 0)
    }

    // MARK: - What is there

    /// The item with an identifier, or nil.
    public subscript(identifier: ItemIdentifier) -> FileProviderItem? { nodes[identifier]?.item }

    /// A file's bytes, or nil for what is not there.
    public func content(of identifier: ItemIdentifier) -> RemoteContent? { nodes[identifier]?.content }

    /// A directory's items in the order of their listing.
    public func items(in directory: ItemIdentifier) -> [FileProviderItem] {
        (children[directory] ?? []).compactMap { nodes[$0]?.item }
    }

    /// The first item under a path, its names separated by slashes; the root for the empty one.
    public func identifier(at path: String) -> ItemIdentifier? {
        path.split(separator: "/").reduce(ItemIdentifier.rootContainer) { directory, name in
            directory.flatMap { directory in
                items(in: directory).first { $0.filename.utf8.elementsEqual(name.utf8) }?.itemIdentifier
            }
        }
    }

    /// An item as a remote shows it whose directories have versions that cover all below them.
    func covering(_ item: FileProviderItem) -> FileProviderItem {
        guard item.kind == .directory else { return item }
        var hash: UInt64 = 14_695_981_039_346_656_037
        for child in items(in: item.itemIdentifier).map({ covering($0) }) {
            let said = Array(child.itemIdentifier.rawValue.utf8) + child.itemVersion.contentVersion
            for byte in said + child.itemVersion.metadataVersion { hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211 }
        }
        var item = item
        item.itemVersion.contentVersion += Array("-\(hash)".utf8)
        return item
    }

    /// How many items there are, the root left out.
    public var count: Int { nodes.count - 1 }

    // MARK: - Changing it

    @discardableResult
    public mutating func addFile(
        _ name: String, in parent: ItemIdentifier = .rootContainer, content: RemoteContent,
        identifier: ItemIdentifier? = nil
    ) -> ItemIdentifier {
        add(name, in: parent, kind: .file, content: content, identifier: identifier) {
            $0.documentSize = content.size
        }
    }

    @discardableResult
    public mutating func addDirectory(
        _ name: String, in parent: ItemIdentifier = .rootContainer, identifier: ItemIdentifier? = nil
    ) -> ItemIdentifier {
        add(name, in: parent, kind: .directory, content: .bytes([]), identifier: identifier) { _ in }
    }

    @discardableResult
    public mutating func addSymbolicLink(
        _ name: String, to target: String, in parent: ItemIdentifier = .rootContainer,
        identifier: ItemIdentifier? = nil
    ) -> ItemIdentifier {
        add(name, in: parent, kind: .symbolicLink, content: .bytes([]), identifier: identifier) {
            $0.symlinkTargetPath = target
        }
    }

    /// Gives a file new bytes, and with them a new content version, size and modification time.
    public mutating func write(_ content: RemoteContent, to identifier: ItemIdentifier) {
        update(identifier) { node, stamp in
            node.content = content
            node.item.documentSize = content.size
            node.item.itemVersion.contentVersion = Array("c\(stamp)".utf8)
            node.item.contentModificationDate = Self.date(stamp)
        }
    }

    public mutating func rename(_ identifier: ItemIdentifier, to name: String) {
        update(identifier) { node, _ in node.item.filename = name }
    }

    /// Moves an item into another directory, under another name when one is given.
    public mutating func move(_ identifier: ItemIdentifier, to parent: ItemIdentifier, as name: String? = nil) {
        guard let old = nodes[identifier]?.item.parentItemIdentifier else { return }
        update(identifier) { node, stamp in
            node.item.parentItemIdentifier = parent
            if let name { node.item.filename = name }
            node.serial = stamp
        }
        children[old]?.removeAll { $0 == identifier }
        children[parent, default: []].append(identifier)
        if parent == .trashContainer { endShares(of: identifier) }
    }

    /// Gives others access to an item, as its owner would on the remote.
    public mutating func share(_ identifier: ItemIdentifier) {
        update(identifier) { node, _ in node.item.isShared = true }
    }

    /// Whoever had access to an item or to something below it has none any more.
    private mutating func endShares(of identifier: ItemIdentifier) {
        if nodes[identifier]?.item.isShared == true { update(identifier) { node, _ in node.item.isShared = false } }
        for child in children[identifier] ?? [] { endShares(of: child) }
    }

    /// Moves an item into the trash. `move` takes it out again.
    public mutating func trash(_ identifier: ItemIdentifier) {
        move(identifier, to: .trashContainer)
    }

    /// Changes what an item says of itself, as it is, and its metadata version. What is said may be wrong.
    public mutating func edit(_ identifier: ItemIdentifier, _ change: (inout FileProviderItem) -> Void) {
        update(identifier) { node, _ in change(&node.item) }
    }

    /// Deletes an item with all below it.
    public mutating func delete(_ identifier: ItemIdentifier) {
        guard identifier != .rootContainer, let node = nodes[identifier] else { return }
        children[node.item.parentItemIdentifier]?.removeAll { $0 == identifier }
        var doomed = [identifier]
        while let next = doomed.popLast() {
            doomed += children.removeValue(forKey: next) ?? []
            nodes[next] = nil
            history.append(next)
        }
    }

    /// Forgets the history: every anchor that was given has expired.
    public mutating func expireAnchors() {
        life += 1
        history = []
    }

    /// Gives every item another identifier and forgets the history and what was made, as a remote that lost its
    /// database and was built anew from its files.
    public mutating func loseIdentifiers() {
        var names: [ItemIdentifier: ItemIdentifier] = [
            .rootContainer: .rootContainer, .trashContainer: .trashContainer,
        ]
        for old in nodes.keys where old != .rootContainer {
            counter += 1
            names[old] = ItemIdentifier("again-\(counter)")
        }
        nodes = Dictionary(
            uniqueKeysWithValues: nodes.map { old, node in
                var node = node
                node.item.itemIdentifier = names[old] ?? old
                node.item.parentItemIdentifier = names[node.item.parentItemIdentifier] ?? .rootContainer
                return (names[old] ?? old, node)
            })
        children = Dictionary(
            uniqueKeysWithValues: children.map { old, items in (names[old] ?? old, items.map { names[$0] ?? $0 }) })
        made = [:]
        expireAnchors()
    }

    // MARK: - What enumerators ask

    var anchor: SyncAnchor { anchor(at: history.count) }

    /// The changes after an anchor, each item once, as it is now; nil when the anchor has expired.
    func changes(since anchor: SyncAnchor, limit: Int) -> ChangeBatch? {
        let parts = String(decoding: anchor.rawValue, as: UTF8.self).split(separator: ".")
        guard parts.count == 2, Int(parts[0]) == life, let start = Int(parts[1]), (0...history.count).contains(start)
        else { return nil }
        let end = min(history.count, start + limit)
        var batch = ChangeBatch(anchor: self.anchor(at: end), moreComing: end < history.count)
        var seen: Set<ItemIdentifier> = []
        for identifier in history[start..<end] where seen.insert(identifier).inserted {
            if let item = self[identifier] { batch.updated.append(item) } else { batch.deleted.append(identifier) }
        }
        return batch
    }

    /// The items of a directory that come after a place, and the place where the next ones begin.
    func page(of directory: ItemIdentifier, after serial: Int, size: Int) -> (items: [FileProviderItem], next: Int?) {
        let rest = (children[directory] ?? []).compactMap { nodes[$0] }.filter { $0.serial > serial }
        let page = rest.prefix(max(1, size))
        return (page.map(\.item), page.count < rest.count ? page.last?.serial : nil)
    }

    // MARK: - Private

    private func anchor(at position: Int) -> SyncAnchor { SyncAnchor("\(life).\(position)") }

    mutating func add(
        _ name: String, in parent: ItemIdentifier, kind: ItemKind, content: RemoteContent,
        identifier: ItemIdentifier?, _ complete: (inout FileProviderItem) -> Void
    ) -> ItemIdentifier {
        counter += 1
        let identifier = identifier ?? ItemIdentifier("item-\(counter)")
        var item = FileProviderItem(
            itemIdentifier: identifier, parentItemIdentifier: parent, filename: name, kind: kind,
            itemVersion: ItemVersion(contentVersion: "c\(counter)", metadataVersion: "m\(counter)"),
            capabilities: hasTrash ? .ordinary.union(.allowsTrashing) : .ordinary,
            creationDate: Self.date(counter), contentModificationDate: Self.date(counter))
        complete(&item)
        nodes[identifier] = Node(item: item, content: content, serial: counter)
        children[parent, default: []].append(identifier)
        history.append(identifier)
        return identifier
    }

    mutating func update(_ identifier: ItemIdentifier, _ change: (inout Node, Int) -> Void) {
        guard var node = nodes[identifier] else { return }
        counter += 1
        change(&node, counter)
        node.item.itemVersion.metadataVersion = Array("m\(counter)".utf8)
        nodes[identifier] = node
        history.append(identifier)
    }

    private static func date(_ stamp: Int) -> FileTimestamp {
        FileTimestamp(seconds: 1_600_000_000 + Int64(stamp), nanoseconds: 123_456_789)
    }
}
