import Crypto
import FileProvider
import Synchronization

/// Contents that were sent and not answered, of which nobody knows the tags that the server gave them: they are known again
/// by their bytes, or by the date that went with them. In memory, and no more than a few: what is forgotten is a stranger.
final class LostContents: Sendable {
    struct Content: Sendable {
        var size: Int64
        /// The date that it has here.
        var date: FileTimestamp
        var mark: Mark
        /// Tags of others that had its name and its length.
        var strangers: Set<[UInt8]> = []
    }

    /// What one content is told from another by.
    enum Mark: Hashable, Sendable {
        /// SHA-256.
        case digest([UInt8])
        /// The server was told the date, and keeps it in seconds.
        case seconds(Int64)
    }

    private struct Key: Hashable {
        var name: [UInt8]
        var mark: Mark
    }

    private let contents = Mutex<[(key: Key, content: Content)]>([])
    private static let most = 1000

    static func digest(of bytes: [UInt8]) -> Mark { .digest(Array(SHA256.hash(data: bytes))) }

    /// No answer has come, and none will.
    func note(_ name: String, size: Int64, date: FileTimestamp, _ mark: Mark) {
        let key = Key(name: Array(name.utf8), mark: mark)
        contents.withLock { contents in
            contents.removeAll { $0.key == key }
            contents.append((key, Content(size: size, date: date, mark: mark)))
            if contents.count > Self.most { contents.removeFirst() }
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
        contents.withLock { contents in
            if let found { contents.removeAll { $0.key == Key(name: bytes, mark: found.mark) } }
            for index in contents.indices where contents[index].key.name == bytes {
                contents[index].content.strangers.insert(tag)
            }
        }
    }
}
