import FileProvider
import FileProviderPaths

/// Makes a tree of keys that come in order.
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
