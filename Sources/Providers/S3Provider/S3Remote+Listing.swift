import FileProvider
import Foundation
import PathAddressing
import Synchronization

/// Listings, of one directory and of whole trees: one request for a thousand keys.
extension S3Remote {
    /// Where a listing goes on, and the objects before that a directory may yet share its name with.
    private struct Token: Codable {
        var next: String
        var objects: [String]
    }

    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        try await ready()
        return try await translating { [self] in
            let token = try token.map(Self.token)
            let prefix = prefix(of: path)
            if token == nil { try await settleDoubts(over: [.within(prefix)]) }
            let listing = try await client.list(prefix: prefix, isFlat: false, from: token?.next, limit: limit)
            if token == nil, listing.entries.isEmpty, listing.next == nil, !path.names.isEmpty {
                throw Self.missing(path)
            }
            if moves.hides(prefix) { throw Self.missing(path) }
            report(listing.unreadable, in: path)
            var namer = EntryNamer(objects: token?.objects ?? [])
            var entries: [RemoteEntry] = []
            for entry in listing.entries where !moves.hides(entry.key) {
                switch entry {
                case .prefix(let below):
                    let name = namer.directory(String(below.dropping(prefix).dropLast()), key: below)
                    entries.append(RemoteEntry(name: name, kind: .directory, tag: [], isTagStrong: false))
                case .object(let object):
                    if let entry = self.entry(object, in: prefix, &namer) { entries.append(entry) }
                }
            }
            return RemoteListing(
                entries: try await withLinks(entries, in: path),
                next: try listing.next.map { try Self.bytes(Token(next: $0, objects: namer.objects)) })
        }
    }

    func tree(below path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteTreeListing {
        try await ready()
        return try await translating { [self] in
            let token = try token.map(Self.treeToken)
            let prefix = prefix(of: path)
            if token == nil { try await settleDoubts(over: [.below(prefix)]) }
            let listing = try await client.list(prefix: prefix, isFlat: true, from: token?.next, limit: limit)
            if token == nil, listing.entries.isEmpty, listing.next == nil, !path.names.isEmpty {
                throw Self.missing(path)
            }
            var walker = TreeWalker(root: path, open: token?.open ?? [], objects: token?.objects ?? [])
            for entry in listing.entries where !moves.hides(entry.key) {
                guard case .object(let object) = entry else { continue }
                walker.take(object, below: prefix) { object, prefix, namer in self.entry(object, in: prefix, &namer) }
            }
            var entries: [(parent: RemotePath, entry: RemoteEntry)] = []
            for (parent, entry) in walker.found {
                if entry.kind == .file, LinkNames.isOne(entry.name) {
                    for whole in try await withLinks([entry], in: parent) { entries.append((parent, whole)) }
                } else {
                    entries.append((parent, entry))
                }
            }
            return RemoteTreeListing(
                entries: entries,
                next: try listing.next.map {
                    try JSONEncoder().encode(TreeToken(next: $0, open: walker.open, objects: walker.objects)).map { $0 }
                })
        }
    }

    /// An object as an entry in the directory with a prefix; nil for the directory's own object.
    private func entry(_ object: S3Object, in prefix: String, _ namer: inout EntryNamer) -> RemoteEntry? {
        let part = object.key.dropping(prefix)
        if part.isEmpty {
            note(marked: prefix)
            return object.size > 0 ? file(object, name: KeyNames.content) : nil
        }
        return file(object, name: namer.file(part, key: object.key))
    }

    private func report(_ unreadable: Int, in path: RemotePath) {
        guard unreadable > 0 else { return }
        let place = path.names.joined(separator: "/")
        manager.report(
            "\(unreadable) keys in '/\(place)' are not shown: they are not UTF-8, or have no valid size or no ETag")
    }

    private static func bytes(_ token: Token) throws -> [UInt8] { Array(try JSONEncoder().encode(token)) }

    private static func token(_ bytes: [UInt8]) throws -> Token {
        guard let token = try? JSONDecoder().decode(Token.self, from: Data(bytes)) else {
            throw FileProviderError(.pageExpired)
        }
        return token
    }

    private struct TreeToken: Codable {
        var next: String
        var open: [TreeWalker.Open]
        var objects: [String]
    }

    private static func treeToken(_ bytes: [UInt8]) throws -> TreeToken {
        guard let token = try? JSONDecoder().decode(TreeToken.self, from: Data(bytes)) else {
            throw FileProviderError(.pageExpired)
        }
        return token
    }
}

/// Names entries in the order of their keys, so that an object `a` and keys below `a/` get two names. Between the two may
/// come many others, as `a-b` and `a.c`: those whose keys begin with `a`.
struct EntryNamer {
    /// The keys of the objects that a directory to come may share its name with.
    private(set) var objects: [String]

    init(objects: [String] = []) {
        self.objects = objects
    }

    mutating func file(_ part: String, key: String) -> String {
        objects.removeAll { !key.utf8.starts(with: $0.utf8) }
        objects.append(key)
        return KeyNames.name(of: part)
    }

    /// - Parameter key: with its slash.
    mutating func directory(_ part: String, key: String) -> String {
        objects.removeAll { !key.utf8.starts(with: $0.utf8) }
        let name = KeyNames.name(of: part)
        return objects.contains { $0.utf8.count == key.utf8.count - 1 } && !part.isEmpty
            ? name + KeyNames.directory : name
    }
}

/// Makes a tree of keys that come in their order.
struct TreeWalker {
    /// A directory that the last key lay in.
    struct Open: Codable {
        var prefix: String
        var name: String
    }

    let root: RemotePath
    var open: [Open]
    private var namer: EntryNamer
    private(set) var found: [(parent: RemotePath, entry: RemoteEntry)] = []

    init(root: RemotePath, open: [Open], objects: [String]) {
        self.root = root
        self.open = open
        namer = EntryNamer(objects: objects)
    }

    var objects: [String] { namer.objects }

    private var path: RemotePath { RemotePath(root.names + open.map(\.name)) }

    mutating func take(
        _ object: S3Object, below base: String, _ make: (S3Object, String, inout EntryNamer) -> RemoteEntry?
    ) {
        while let last = open.last, !object.key.utf8.starts(with: last.prefix.utf8) { open.removeLast() }
        while true {
            let prefix = open.last?.prefix ?? base
            let rest = object.key.utf8.dropFirst(prefix.utf8.count)
            guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else { break }
            let part = String(decoding: Array(rest[..<slash]), as: UTF8.self)
            let below = prefix + part + "/"
            let name = namer.directory(part, key: below)
            found.append((path, RemoteEntry(name: name, kind: .directory, tag: [], isTagStrong: false)))
            open.append(Open(prefix: below, name: name))
        }
        if let entry = make(object, open.last?.prefix ?? base, &namer) { found.append((path, entry)) }
    }
}
