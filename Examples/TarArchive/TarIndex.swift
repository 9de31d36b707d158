import FileProvider

/// The content of an archive as items. An item is identified by the offset of its entry, which neither a rename nor
/// appended entries change. Of two entries with one path, the later provides the content and the earlier the
/// identity, as with `tar -r`.
struct TarIndex: Sendable {
    private var entries: [ItemIdentifier: Entry] = [:]
    private var children: [ItemIdentifier: [ItemIdentifier]] = [.rootContainer: []]

    private struct Entry {
        var item: FileProviderItem
        var data: Int64
    }

    /// - Parameter warn: called for each entry that cannot be shown.
    /// - Throws: `malformedResponse` if the file is not a tar archive; `serverUnreachable` if it cannot be read.
    init(reading archive: TarArchive, warn: (String) -> Void) throws {
        // Compared as bytes: Swift treats two Unicode forms of a text as equal, an archive does not.
        var paths: [[UInt8]: ItemIdentifier] = [:]
        var reader = TarReader(archive)
        while let entry = try reader.next() {
            let path = entry.path.split(separator: "/").map(String.init).filter { $0 != "." }
            guard !path.isEmpty else { continue }
            guard !path.contains("..") else {
                warn("'\(entry.path)' leads out of the archive and is not shown")
                continue
            }
            let parent = makeDirectories(path.dropLast(), for: entry, &paths)
            let key = Self.key(path[...])
            let identifier = paths[key] ?? ItemIdentifier("entry-\(entry.offset)")
            paths[key] = identifier
            place(entry, as: identifier, named: path[path.count - 1], in: parent)
        }
    }

    /// Creates the parent directories that have no entry.
    private mutating func makeDirectories(
        _ path: ArraySlice<String>, for entry: TarEntry, _ paths: inout [[UInt8]: ItemIdentifier]
    ) -> ItemIdentifier {
        var parent = ItemIdentifier.rootContainer
        for depth in path.indices {
            let key = Self.key(path[...depth])
            let identifier = paths[key] ?? ItemIdentifier("directory-\(entry.offset)-\(depth)")
            if paths[key] == nil {
                var directory = entry
                directory.kind = .directory
                place(directory, as: identifier, named: path[depth], in: parent)
                paths[key] = identifier
            }
            parent = identifier
        }
        return parent
    }

    private static func key(_ path: ArraySlice<String>) -> [UInt8] { Array(path.joined(separator: "/").utf8) }

    private mutating func place(
        _ entry: TarEntry, as identifier: ItemIdentifier, named name: String, in parent: ItemIdentifier
    ) {
        let isFile = entry.kind == .file
        let content = isFile ? "\(entry.data).\(entry.size).\(entry.modifiedAt)" : ""
        let item = FileProviderItem(
            itemIdentifier: identifier, parentItemIdentifier: parent, filename: name, kind: entry.kind,
            itemVersion: ItemVersion(
                contentVersion: Array(content.utf8),
                metadataVersion: Array("\(entry.permissions).\(entry.modifiedAt)".utf8)),
            capabilities: .readOnly, documentSize: isFile ? entry.size : nil,
            contentModificationDate: FileTimestamp(seconds: entry.modifiedAt, nanoseconds: 0),
            permissions: entry.permissions, symlinkTargetPath: entry.kind == .symbolicLink ? entry.linkTarget : nil)
        if entries[identifier] == nil { children[parent, default: []].append(identifier) }
        entries[identifier] = Entry(item: item, data: entry.data)
        if entry.kind == .directory, children[identifier] == nil { children[identifier] = [] }
    }

    /// - Throws: `noSuchItem`.
    func item(_ identifier: ItemIdentifier) throws -> FileProviderItem {
        if identifier == .rootContainer {
            return FileProviderItem(
                itemIdentifier: .rootContainer, parentItemIdentifier: .rootContainer, filename: "/", kind: .directory,
                itemVersion: ItemVersion(contentVersion: [], metadataVersion: []), capabilities: .readOnly)
        }
        guard let entry = entries[identifier] else { throw FileProviderError.noSuchItem(identifier) }
        return entry.item
    }

    /// The offset of a file's bytes in the archive.
    func data(of identifier: ItemIdentifier) throws -> Int64 {
        guard let entry = entries[identifier], entry.item.kind == .file else {
            throw FileProviderError.noSuchItem(identifier)
        }
        return entry.data
    }

    func items(in directory: ItemIdentifier) throws -> [FileProviderItem] {
        guard let identifiers = children[directory] else { throw FileProviderError.noSuchItem(directory) }
        return try identifiers.map { try item($0) }
    }
}
