import Crypto
import FileProvider
import PathAddressing
import Synchronization

/// Contents that were sent and not answered, of which nobody knows the tags that the server gave them: they are known again
/// by their bytes, or by the date that went with them. No more than a few: what is forgotten is a stranger. They outlive the
/// process.
final class LostContents: Sendable {
    struct Content: Sendable, Codable {
        var size: Int64
        /// The date that it has here.
        var date: FileTimestamp
        var mark: Mark
        /// Tags of others that had its name and its length.
        var strangers: Set<[UInt8]> = []
    }

    /// What one content is told from another by.
    enum Mark: Hashable, Sendable, Codable {
        /// SHA-256.
        case digest([UInt8])
        /// The server was told the date, and keeps it in seconds.
        case seconds(Int64)
    }

    private struct Key: Hashable {
        var name: [UInt8]
        var mark: Mark

        var bytes: [UInt8] {
            switch mark {
            case .digest(let digest): name + [0, 0] + digest
            case .seconds(let seconds): name + [0, 1] + Array(String(seconds).utf8)
            }
        }
    }

    private struct Record: Codable, Sendable {
        var name: [UInt8]
        var content: Content
    }

    private let contents: Mutex<[(key: Key, content: Content)]>
    private let kept: SurvivingRecords<Record>
    private static let most = 1000

    init(in store: ReportingStore) {
        kept = SurvivingRecords("webdav.lost", in: store)
        contents = Mutex(
            kept.all.map { (Key(name: $0.record.name, mark: $0.record.content.mark), $0.record.content) })
    }

    static func digest(of bytes: [UInt8]) -> Mark { .digest(Array(SHA256.hash(data: bytes))) }

    /// No answer has come, and none will.
    func note(_ name: String, size: Int64, date: FileTimestamp, _ mark: Mark) {
        note(Key(name: Array(name.utf8), mark: mark), Content(size: size, date: date, mark: mark))
    }

    private func note(_ key: Key, _ content: Content) {
        let forgotten = contents.withLock { contents -> Key? in
            contents.removeAll { $0.key == key }
            contents.append((key, content))
            return contents.count > Self.most ? contents.removeFirst().key : nil
        }
        kept.set(key.bytes, Record(name: key.name, content: content))
        if let forgotten { kept.remove(forgotten.bytes) }
    }

    /// A file is about to get another name: under that, too, it may be what was sent.
    func carry(_ name: String, to newName: String) {
        let (old, new) = (Array(name.utf8), Array(newName.utf8))
        guard old != new else { return }
        for (key, content) in contents.withLock({ $0 }) where key.name == old {
            note(Key(name: new, mark: key.mark), content)
        }
    }

    /// What a file with a name may be.
    func candidates(_ name: String, size: Int64, tag: [UInt8]) -> [Content] {
        contents.withLock { contents in
            if contents.isEmpty { return [] }
            let bytes = Array(name.utf8)
            return contents.filter {
                $0.key.name == bytes && $0.content.size == size && !$0.content.strangers.contains(tag)
            }.map(\.content)
        }
    }

    /// It is known now what has a tag.
    ///
    /// - Parameter found: nil is somebody else's.
    func settle(_ name: String, tag: [UInt8], as found: Content?) {
        let bytes = Array(name.utf8)
        if let found { kept.remove(Key(name: bytes, mark: found.mark).bytes) }
        contents.withLock { contents in
            if let found { contents.removeAll { $0.key == Key(name: bytes, mark: found.mark) } }
            for index in contents.indices where contents[index].key.name == bytes {
                contents[index].content.strangers.insert(tag)
            }
        }
    }
}
