import FileProvider
import FileProviderPaths
import Foundation

/// The contents of the file that is the remote: items by path, and the number of the last change.
struct Library {
    struct Item: Codable {
        /// The names from the root, with a slash between them.
        var path: String
        /// The number of the change that made the present content. It is the tag: equal revisions mean equal bytes.
        var revision: Int
        /// Base64 in the file; nil for a directory.
        var content: Data?
        /// Nanoseconds since 1970.
        var modified: Int64

        var kind: ItemKind { content == nil ? .directory : .file }
    }

    /// The file as JSON.
    private struct Document: Codable {
        var revision: Int
        var items: [Item]
    }

    private var revision = 0
    /// Not by text: Swift takes two Unicode forms of a name for one, and Linux does not.
    private var items: [RemotePath: Item] = [:]

    /// A library without items.
    init() {}

    /// Reads a library.
    ///
    /// - Throws: `serverUnreachable` if the file cannot be read, `malformedResponse` if it holds no library. Neither means
    ///   that items were removed.
    init(at url: URL) throws {
        let data: Data
        do {
            data = try Data(contentsOf: url)
        } catch {
            throw FileProviderError(.serverUnreachable, "cannot read '\(url.path)'")
        }
        do {
            let document = try JSONDecoder().decode(Document.self, from: data)
            revision = document.revision
            for item in document.items { items[RemotePath(item.path.split(separator: "/").map(String.init))] = item }
        } catch {
            throw FileProviderError(.malformedResponse, "'\(url.path)' is not a library: \(error)")
        }
    }

    /// Replaces the file in one step: a reader sees the library before the change or after it.
    func save(to url: URL) throws {
        do {
            try JSONEncoder().encode(Document(revision: revision, items: Array(items.values)))
                .write(to: url, options: .atomic)
        } catch {
            throw FileProviderError(.serverUnreachable, "cannot write '\(url.path)': \(error.localizedDescription)")
        }
    }

    // MARK: - Items

    /// The item at a path; nil if there is none. The root is always there.
    subscript(path: RemotePath) -> Item? {
        get { path == .root ? Item(path: "", revision: 0, content: nil, modified: 0) : items[path] }
        set {
            items[path] = newValue
            items[path]?.path = Self.text(path)
        }
    }

    private static func text(_ path: RemotePath) -> String { path.names.joined(separator: "/") }

    func entry(at path: RemotePath) throws -> RemoteEntry {
        guard let item = self[path] else {
            throw FileProviderError(.noSuchItem, "the library has no '\(Self.text(path))'")
        }
        return RemoteEntry(
            name: path.name ?? "", kind: item.kind, tag: item.kind == .file ? Array("\(item.revision)".utf8) : [],
            isTagStrong: true, size: item.content.map { Int64($0.count) },
            attributes: RemoteAttributes(
                contentModificationDate: FileTimestamp(nanosecondsSince1970: item.modified)))
    }

    /// The paths of the items in a directory.
    func children(of path: RemotePath) -> [RemotePath] {
        items.keys.filter { $0.names.count == path.names.count + 1 && $0.isBelow(path) }
    }

    // MARK: - Changes

    /// Checks a condition of what is at a path now.
    func check(_ condition: RemoteCondition, at path: RemotePath) throws {
        let present = self[path] == nil ? nil : try entry(at: path)
        let holds =
            switch condition {
            case .always: true
            case .absent: present == nil
            case .unchanged(let tag): present?.tag == tag
            case .empty: children(of: path).allSatisfy { HiddenName.isOne($0.name ?? "") }
            }
        guard holds else { throw RemoteConditionFailure(present: present) }
    }

    mutating func put(_ content: Data?, at path: RemotePath, _ attributes: RemoteAttributes) throws -> RemoteEntry {
        guard try entry(at: path.parent).kind == .directory else { throw FileProviderError(.noSuchItem) }
        revision += 1
        let now = Int64(Date().timeIntervalSince1970 * 1_000_000_000)
        self[path] = Item(
            path: Self.text(path), revision: revision, content: content,
            modified: attributes.contentModificationDate?.nanosecondsSince1970 ?? now)
        return try entry(at: path)
    }

    mutating func move(_ path: RemotePath, to newPath: RemotePath) throws -> RemoteEntry {
        let item = try entry(at: path)
        guard try entry(at: newPath.parent).kind == .directory else { throw FileProviderError(.noSuchItem) }
        for child in item.kind == .directory ? children(of: path) : [] {
            _ = try moveBelow(child, from: path, to: newPath)
        }
        (self[newPath], self[path]) = (self[path], nil)
        return try entry(at: newPath)
    }

    private mutating func moveBelow(_ child: RemotePath, from path: RemotePath, to newPath: RemotePath) throws {
        for deeper in children(of: child) { try moveBelow(deeper, from: path, to: newPath) }
        self[RemotePath(newPath.names + child.names.dropFirst(path.names.count))] = self[child]
        self[child] = nil
    }

    mutating func delete(_ path: RemotePath) {
        for child in children(of: path) { delete(child) }
        self[path] = nil
    }
}
