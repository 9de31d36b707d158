import SystemPackage

/// By which tags contents are known here whose objects have got others since: a copy that the server makes of what was sent in
/// parts, or of what it encrypts, has the same bytes and another tag. Without this everything below a directory that is
/// renamed would be other content, fetched again, and in conflict with what is being edited.
///
/// What is lost is other content once.
final class CopyBook: Sendable {
    private struct Entry: Codable {
        /// The object's.
        var tag: String
        /// The content's.
        var known: String
    }

    private let entries: ObjectNotes<Entry>

    init(directory: FilePath) {
        entries = ObjectNotes(directory: directory.appending("copies"))
    }

    /// The tag that an object's content is known by.
    func known(_ object: S3Object) -> String { known(object.key, tag: object.tag) }

    func known(_ key: String, tag: String) -> String {
        guard let entry = entries[key], entry.tag == tag else { return tag }
        return entry.known
    }

    /// The tag of the object at a key while it holds a content that is known by another.
    func tag(of known: String, at key: String) -> String {
        guard let entry = entries[key], entry.known == known else { return known }
        return entry.tag
    }

    /// Whether an object is a copy of another; nil when nothing is known of it.
    func isCopy(_ copy: S3Object, of original: S3Object) -> Bool? {
        guard let entry = entries[copy.key], entry.tag == copy.tag else { return nil }
        return entry.known == known(original)
    }

    func note(_ copies: [(key: String, tag: String, known: String)]) {
        entries.note(copies.map { ($0.key, $0.tag == $0.known ? nil : Entry(tag: $0.tag, known: $0.known)) })
    }

    func remove(_ keys: [String]) {
        entries.note(keys.map { ($0, nil) })
    }
}
