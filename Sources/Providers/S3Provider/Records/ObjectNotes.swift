import FileProvider
import FileProviderPaths
import Synchronization

/// Small facts about single objects that cost one request each to find out again.
///
/// The record of an object has the object's directory, a zero byte and its name as key, so that a listing loads those of one
/// directory with one query. Writing one costs the same whatever the size of the directory.
final class ObjectNotes<Note: Codable & Sendable>: Sendable {
    private typealias Page = [KeyBytes: Note]

    private let store: ReportingStore
    private let namespace: ProviderStoreNamespace<Note>
    /// The notes of directories that were used lately.
    private let pages = Mutex<[KeyBytes: Page]>([:])
    private static var mostPages: Int { 100 }
    private static var slash: UInt8 { UInt8(ascii: "/") }

    init(_ namespace: String, in store: ReportingStore) {
        self.store = store
        self.namespace = ProviderStoreNamespace(namespace)
    }

    subscript(_ key: String) -> Note? {
        let (directory, name) = Self.split(key)
        return pages.withLock { pages in
            load(directory, &pages)
            return pages[directory]?[name]
        }
    }

    /// Stores or, with nil, removes notes in one transaction. When that fails, the user is told, and the notes live as long
    /// as the process.
    func note(_ changes: [(key: String, note: Note?)]) {
        pages.withLock { pages in
            var stored: [(key: ProviderStoreKey, record: Note?)] = []
            for (key, note) in changes {
                let (directory, name) = Self.split(key)
                load(directory, &pages)
                guard note != nil || pages[directory]?[name] != nil else { continue }
                // In place: a copy of the page would cost as much as the directory is large.
                pages[directory, default: [:]][name] = note
                stored.append((ProviderStoreKey(directory.bytes + [0] + name.bytes), note))
            }
            guard !stored.isEmpty else { return }
            store.apply(stored, in: namespace)
        }
    }

    /// Brings the notes of a directory into memory.
    private func load(_ directory: KeyBytes, _ pages: inout [KeyBytes: Page]) {
        if pages[directory] != nil { return }
        if pages.count >= Self.mostPages { pages.removeAll() }
        let prefix = directory.bytes + [0]
        var page: Page = [:]
        for (key, note) in store.all(in: namespace, prefix: ProviderStoreKey(prefix)) {
            let name = key.bytes.dropFirst(prefix.count)
            // A slash is in a key of another directory, whose name begins with a zero byte.
            if !name.contains(Self.slash) { page[KeyBytes(String(decoding: name, as: UTF8.self))] = note }
        }
        pages[directory] = page
    }

    private static func split(_ key: String) -> (directory: KeyBytes, name: KeyBytes) {
        let bytes = Array(key.utf8)
        let start = bytes.lastIndex(of: slash).map { $0 + 1 } ?? 0
        return (
            KeyBytes(String(decoding: bytes[..<start], as: UTF8.self)),
            KeyBytes(String(decoding: bytes[start...], as: UTF8.self))
        )
    }
}
