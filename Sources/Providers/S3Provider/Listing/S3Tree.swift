import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// The keys below a prefix of a bucket as files, directories and symbolic links.
///
/// A directory is what keys have in common up to a slash; one that is made here, or emptied here, is an object without content
/// whose key ends with a slash, as other tools make them too.
final class S3Tree: Sendable {
    private struct State {
        /// Directories that are kept by an object of their own.
        var marked: Set<KeyBytes> = []
        /// When directories were last seen, in seconds since 1970.
        var seen: [KeyBytes: Int64] = [:]
    }

    let client: S3Client
    let records: ObjectRecords
    let moves: MoveJournal
    let links: SymbolicLinks
    private let freeNames = FreeNames()
    private let state = Mutex(State())

    init(client: S3Client, records: ObjectRecords, moves: MoveJournal) {
        self.client = client
        self.records = records
        self.moves = moves
        links = SymbolicLinks(client: client, records: records)
    }

    // MARK: - Keys

    var rootPrefix: String { client.location.prefix }

    /// The key of a file, or of a directory without its slash.
    func key(of path: RemotePath) -> String {
        if path.names.last == KeyNames.content { return prefix(of: path.parent) }
        return rootPrefix + path.names.map(KeyNames.part).joined(separator: "/")
    }

    /// The beginning of the keys in a directory.
    func prefix(of path: RemotePath) -> String {
        path.names.isEmpty ? rootPrefix : rootPrefix + path.names.map(KeyNames.part).joined(separator: "/") + "/"
    }

    /// The key of a file or a link, the prefix of a directory.
    func key(of path: RemotePath, _ kind: ItemKind) -> String {
        switch kind {
        case .file: key(of: path)
        case .directory: prefix(of: path)
        case .symbolicLink: key(of: path) + LinkNames.suffix
        }
    }

    /// The keys of an item of any kind at a path.
    func extents(of path: RemotePath, isTree: Bool) -> [PathExtent] {
        let (key, prefix) = (key(of: path), prefix(of: path))
        return [.exactly(key), .exactly(key + LinkNames.suffix), isTree ? .below(prefix) : .exactly(prefix)]
    }

    /// - Throws: `cannotSynchronize` for a name that would come back as another.
    func check(_ path: RemotePath) throws {
        guard let name = path.name else { return }
        if !KeyNames.canBeMade(name) {
            throw FileProviderError(
                .cannotSynchronize, "names with '\(KeyNames.mark)' in them stand for special keys in a bucket")
        }
        if LinkNames.isOne(name) {
            throw FileProviderError(
                .cannotSynchronize, "names that end with '\(LinkNames.suffix)' are links in a bucket")
        }
        guard key(of: path).utf8.count <= 1024 - LinkNames.suffix.utf8.count else {
            throw FileProviderError(.cannotSynchronize, "the path is too long for a bucket: 1,024 bytes are the most")
        }
    }

    static func missing(_ path: RemotePath) -> FileProviderError {
        FileProviderError(.noSuchItem, "there is no '\(path.names.joined(separator: "/"))' in the bucket")
    }

    // MARK: - Entries

    static func directory(_ name: String) -> RemoteEntry {
        RemoteEntry(name: name, kind: .directory, tag: [], isTagStrong: false)
    }

    /// An item, and the object that it is; a directory is none.
    struct Found {
        var entry: RemoteEntry
        var object: S3Object?
    }

    func entry(at path: RemotePath) async throws -> RemoteEntry? { try await found(at: path)?.entry }

    func found(at path: RemotePath) async throws -> Found? {
        guard let name = path.name else {
            // An empty bucket is a root, too; a missing bucket is an error.
            _ = try await client.list(prefix: rootPrefix, isFlat: true, limit: 1)
            return Found(entry: Self.directory(""))
        }
        let key = key(of: path)
        func file(_ object: S3Object) -> Found { Found(entry: records.file(object, name: name), object: object) }
        if name == KeyNames.content {
            return try await client.listed(key).flatMap { $0.size > 0 ? file($0) : nil }
        }
        if moves.hides(prefix(of: path)) || moves.hides(key) { return nil }
        let directory = Found(entry: Self.directory(name))
        if KeyNames.isDirectoryOnly(name) { return try await isDirectory(path) ? directory : nil }
        // One request shows all objects of this name, unless many names begin with it.
        let listing = try await client.list(prefix: key, isFlat: false, limit: 50)
        var (link, hasKeysBelow): (S3Object?, Bool) = (nil, false)
        for entry in listing.entries {
            switch entry {
            case .object(let object):
                if object.key.utf8.elementsEqual(key.utf8) { return file(object) }
                if object.key.utf8.elementsEqual((key + LinkNames.suffix).utf8) { link = object }
            case .prefix(let below): hasKeysBelow = hasKeysBelow || below.utf8.elementsEqual((key + "/").utf8)
            }
        }
        if listing.next != nil, !hasKeysBelow { hasKeysBelow = try await isDirectory(path) }
        // As in a listing, where the link's object is a file then.
        if hasKeysBelow { return directory }
        if listing.next != nil, link == nil { link = try await client.listed(key + LinkNames.suffix) }
        if let link, case .link(let entry) = try await links.kind(of: link, name: name) {
            return Found(entry: entry, object: link)
        }
        return nil
    }

    /// An object as an entry in the directory with a prefix; nil for the directory's own object.
    func entry(_ object: S3Object, in prefix: String, _ namer: inout EntryNamer) -> RemoteEntry? {
        let part = object.key.dropping(prefix)
        if part.isEmpty {
            note(marked: prefix)
            return object.size > 0 ? records.file(object, name: KeyNames.content) : nil
        }
        return records.file(object, name: namer.file(part, key: object.key))
    }

    /// - Throws: ``RemoteConditionFailure`` when something has the name.
    func requireNothing(at path: RemotePath) async throws {
        if try await isFree(path) { return }
        if let there = try await entry(at: path) { throw RemoteConditionFailure(present: there) }
    }

    private func isFree(_ path: RemotePath) async throws -> Bool {
        guard let name = path.name, name != KeyNames.content, !KeyNames.isDirectoryOnly(name) else { return false }
        let prefix = prefix(of: path.parent)
        return try await freeNames.areFree(
            [ItemKind.file, .directory, .symbolicLink].map { key(of: path, $0) }, in: prefix
        ) {
            [client] in
            let listing = try await client.list(prefix: prefix, isFlat: false, isRaw: true)
            guard listing.next == nil, listing.unreadable == 0 else { return nil }
            // A listing may be older than these. None of them is requested: their names are looked up when they are asked for.
            let recent = client.ledger.recentChanges(below: prefix).map { change in
                let rest = change.path.dropFirst(prefix.utf8.count)
                let part = rest.firstIndex(of: UInt8(ascii: "/")).map { rest[...$0] } ?? rest
                return prefix + String(decoding: Array(part), as: UTF8.self)
            }
            return Set((listing.entries.map(\.key) + recent).map(KeyBytes.init))
        } lookUp: {
            try await entry(at: path) == nil
        }
    }

    /// Checks whether a condition holds now, also by the object itself: a listing may not show yet what another client has written.
    func require(_ condition: RemoteCondition, at path: RemotePath) async throws {
        switch condition {
        case .always, .empty: return
        case .absent:
            try await requireNothing(at: path)
            if let object = try await client.object(key(of: path)) {
                throw RemoteConditionFailure(present: records.file(object, name: path.name ?? ""))
            }
        case .unchanged(let tag):
            let key = key(of: path)
            let wanted = records.tag(of: tag, at: key)
            if try await client.hasTag(wanted, key) { return }
            let there = try await entry(at: path)
            guard let there, there.tag == tag else { throw RemoteConditionFailure(present: there) }
            if try await client.isOutdated(key, listedAs: wanted) {
                throw FileProviderError(
                    .providerDomainTemporarilyUnavailable,
                    "another client has written '\(path.name ?? "/")', and the server does not list that yet")
            }
        }
    }

    /// Whether the object at a key still has the content of an entry's tag: by the object itself, because a listing may be
    /// older, and by the listing.
    func has(_ content: [UInt8], at path: RemotePath) async throws -> Bool {
        let key = key(of: path)
        guard try await client.object(key)?.tag == records.tag(of: content, at: key) else { return false }
        return try await entry(at: path)?.tag == content
    }

    // MARK: - Directories

    private func isDirectory(_ path: RemotePath) async throws -> Bool { try await hasKeys(below: prefix(of: path)) }

    func hasKeys(below prefix: String) async throws -> Bool {
        let listing = try await client.list(prefix: prefix, isFlat: true, limit: 1)
        if case .object(let first)? = listing.entries.first, first.key.utf8.elementsEqual(prefix.utf8) {
            note(marked: prefix)
        }
        return !listing.entries.isEmpty || listing.unreadable > 0
    }

    /// - Throws: `noSuchItem` when no key lies in the directory.
    func requireDirectory(_ path: RemotePath) async throws {
        guard !path.names.isEmpty else { return }
        let prefix = prefix(of: path)
        // After so short a time it is not looked for again: it may be removed in the next moment as well.
        let earliest = FileTimestamp.now.seconds - 5
        if state.withLock({ ($0.seen[KeyBytes(prefix)] ?? 0) > earliest }) { return }
        guard try await isDirectory(path) else { throw Self.missing(path) }
        note(seen: prefix)
    }

    /// Makes the object that keeps a directory.
    func mark(_ prefix: String) async throws {
        _ = try await client.send { [client] in
            client.request("PUT", prefix, fields: ["Content-Type": "application/x-directory"], body: .bytes([]))
        }
        // Where listings are late, nothing else tells the next process of the directory.
        client.ledger.storeRecentChanges()
        note(marked: prefix)
        note(seen: prefix)
    }

    /// Before an object is removed from a directory: makes the object that keeps the directory, unless another object does.
    /// Objects that other operations are removing from it do not count.
    func keepDirectory(_ path: RemotePath) async throws {
        guard !path.names.isEmpty else { return }
        let prefix = prefix(of: path)
        if state.withLock({ $0.marked.contains(KeyBytes(prefix)) }) { return }
        let emptied = client.ledger.emptied
        let listing = try await client.list(prefix: prefix, isFlat: false, limit: emptied.count + 1)
        // A directory that was removed is not made again.
        let isKept =
            listing.next != nil || listing.entries.isEmpty
            || listing.entries.contains { entry in !emptied.contains { $0.contains(Array(entry.key.utf8)) } }
        if !isKept { try await mark(prefix) }
    }

    private func note(marked prefix: String) {
        state.withLock { state in
            if state.marked.count > 10_000 { state.marked.removeAll() }
            state.marked.insert(KeyBytes(prefix))
        }
    }

    func note(seen prefix: String) {
        state.withLock { state in
            if state.seen.count > 1000 { state.seen.removeAll() }
            state.seen[KeyBytes(prefix)] = FileTimestamp.now.seconds
        }
    }

    /// A directory was deleted, or moved.
    func forget(_ prefix: String) {
        state.withLock { state in
            state.seen = state.seen.filter { !$0.key.starts(with: prefix) }
            state.marked = state.marked.filter { !$0.starts(with: prefix) }
        }
    }
}
