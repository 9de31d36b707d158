import FileProvider
import HTTPTransport

/// An object as a listing has it.
struct S3Object: Sendable, Hashable {
    var key: String
    var tag: String
    var size: Int64
    var modified: FileTimestamp?

    /// - Parameter tag: as the server wrote it. Some write it without its quotes in listings, or in all answers.
    init(key: String, tag: String, size: Int64, modified: FileTimestamp?) {
        self.key = key
        self.tag = Self.quoted(tag)
        self.size = size
        self.modified = modified
    }

    /// A tag as conditions have it.
    static func quoted(_ tag: String) -> String { tag.hasSuffix("\"") ? tag : "\"\(tag)\"" }
}

extension S3Object {
    /// The object that a response to HEAD or GET describes; nil for a response without a size or an ETag.
    init?(key: String, head: HTTPResponseHead) {
        guard let tag = head.fields["ETag"], let size = head.wholeLength else { return nil }
        self.init(key: key, tag: tag, size: size, modified: nil)
    }
}
