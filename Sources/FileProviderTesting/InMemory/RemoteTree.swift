import FileProvider

/// The items of an in-memory remote and their history, as a value.
///
/// Names are not validated: a remote may contain two items with one name, and names that no file system accepts.
public struct RemoteTree: Sendable {
    struct Node {
        var item: FileProviderItem
        var content: RemoteContent
        /// The position in listings, by the order of creation.
        var serial: Int
    }

    var nodes: [ItemIdentifier: Node] = [:]
    var children: [ItemIdentifier: [ItemIdentifier]] = [:]
    private var counter = 0
    /// The changed items, oldest first.
    var history: [ItemIdentifier] = []
    /// Anchors with another value have expired.
    private var life = 1
    /// The items created from templates: a repeated creation returns the same item.
    var made: [ItemIdentifier: ItemIdentifier] = [:]
    var hasTrash = false
    /// The changes that were made through a provider and applied, oldest first, without recognized items.
    public internal(set) var applied: [AppliedChange] = []

    init() {
        let root = FileProviderItem(
            itemIdentifier: .rootContainer, parentItemIdentifier: .rootContainer, filename: "/", kind: .directory,
            itemVersion: ItemVersion(contentVersion: "c0", metadataVersion: "m0"))
        nodes[.rootContainer] = Node(item: root, content: .bytes([]), serial: 0)
    }

    // MARK: - State

    /// The item with an identifier, or nil.
    public subscript(identifier: ItemIdentifier) -> FileProviderItem? { nodes[identifier]?.item }

    /// A file's content; nil if it does not exist.
    public func content(of identifier: ItemIdentifier) -> RemoteContent? { nodes[identifier]?.content }

    /// The children of a directory in listing order.
    public func items(in directory: ItemIdentifier) -> [FileProviderItem] {
        (children[directory] ?? []).compactMap { nodes[$0]?.item }
    }

    /// The first item at a path of names separated by slashes; the root for the empty path.
    public func identifier(at path: String) -> ItemIdentifier? {
        path.split(separator: "/").reduce(ItemIdentifier.rootContainer) { directory, name in
            directory.flatMap { directory in
                items(in: directory).first { $0.filename.utf8.elementsEqual(name.utf8) }?.itemIdentifier
            }
        }
    }

    /// An item with a content version that covers all its descendants.
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

    /// The number of items without the root.
    public var count: Int { nodes.count - 1 }

    // MARK: - Changes

    /// Adds a file; the identifier is a new one by default.
    @discardableResult
    public mutating func addFile(
        _ name: String, in parent: ItemIdentifier = .rootContainer, content: RemoteContent,
        identifier: ItemIdentifier? = nil
    ) -> ItemIdentifier {
        add(name, in: parent, kind: .file, content: content, identifier: identifier) {
            $0.documentSize = content.size
        }
    }

    /// Adds an empty directory.
    @discardableResult
    public mutating func addDirectory(
        _ name: String, in parent: ItemIdentifier = .rootContainer, identifier: ItemIdentifier? = nil
    ) -> ItemIdentifier {
        add(name, in: parent, kind: .directory, content: .bytes([]), identifier: identifier) { _ in }
    }

    /// Adds a symbolic link.
    @discardableResult
    public mutating func addSymbolicLink(
        _ name: String, to target: String, in parent: ItemIdentifier = .rootContainer,
        identifier: ItemIdentifier? = nil
    ) -> ItemIdentifier {
        add(name, in: parent, kind: .symbolicLink, content: .bytes([]), identifier: identifier) {
            $0.symlinkTargetPath = target
        }
    }

    /// Replaces a file's content and updates its content version, size and modification time.
    public mutating func write(_ content: RemoteContent, to identifier: ItemIdentifier) {
        update(identifier) { node, stamp in
            node.content = content
            node.item.documentSize = content.size
            node.item.itemVersion.contentVersion = Array("c\(stamp)".utf8)
            node.item.contentModificationDate = Self.date(stamp)
        }
    }

    /// Replaces a file's content by one of the same size without another content version or date.
    public mutating func writeSameVersion(_ content: RemoteContent, to identifier: ItemIdentifier) {
        update(identifier) { node, _ in node.content = content }
    }

    /// Renames an item in its directory.
    public mutating func rename(_ identifier: ItemIdentifier, to name: String) {
        update(identifier) { node, _ in node.item.filename = name }
    }

    /// Moves an item to another directory, optionally with a new name.
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

    /// Shares an item, as its owner would on the remote.
    public mutating func share(_ identifier: ItemIdentifier) {
        update(identifier) { node, _ in node.item.isShared = true }
    }

    private mutating func endShares(of identifier: ItemIdentifier) {
        if nodes[identifier]?.item.isShared == true { update(identifier) { node, _ in node.item.isShared = false } }
        for child in children[identifier] ?? [] { endShares(of: child) }
    }

    /// Moves an item to the trash. `move` restores it.
    public mutating func trash(_ identifier: ItemIdentifier) {
        move(identifier, to: .trashContainer)
    }

    /// Changes an item's properties, unchecked, and its metadata version.
    public mutating func edit(_ identifier: ItemIdentifier, _ change: (inout FileProviderItem) -> Void) {
        update(identifier) { node, _ in change(&node.item) }
    }

    /// Deletes an item recursively.
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

    /// Discards the history: all anchors expire.
    public mutating func expireAnchors() {
        life += 1
        history = []
    }

    /// Assigns new identifiers to all items and discards the history, as a remote does that has rebuilt its database
    /// from its files.
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

    // MARK: - Enumeration

    var anchor: SyncAnchor { anchor(at: history.count) }

    /// The changes after an anchor, each item once in its current state; nil if the anchor has expired.
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

    /// The children of a directory after a serial number, and the number at which the next page begins.
    func page(of directory: ItemIdentifier, after serial: Int, size: Int) -> (items: [FileProviderItem], next: Int?) {
        let rest = (children[directory] ?? []).compactMap { nodes[$0] }.filter { $0.serial > serial }
        let page = rest.prefix(max(1, size))
        return (page.map(\.item), page.count < rest.count ? page.last?.serial : nil)
    }

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
