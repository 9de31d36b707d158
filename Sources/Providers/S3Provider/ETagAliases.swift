import PathAddressing

/// Maps an object's current ETag to the ETag under which the same bytes were first known here.
///
/// A server-side copy of a multipart or encrypted object gets a new ETag although its content is unchanged; without the
/// alias a rename of a directory would invalidate every cached file below it. A lost alias costs one download.
final class ETagAliases: Sendable {
    private struct Alias: Codable {
        /// The object's ETag.
        var tag: String
        /// The ETag by which the content is known.
        var known: String
    }

    private let aliases: ObjectNotes<Alias>

    init(in store: ReportingStore) {
        aliases = ObjectNotes("s3.tags", in: store)
    }

    /// The ETag by which an object's content is known.
    func known(_ object: S3Object) -> String { known(object.key, tag: object.tag) }

    func known(_ key: String, tag: String) -> String {
        guard let alias = aliases[key], alias.tag == tag else { return tag }
        return alias.known
    }

    /// The ETag of the object at a key, given the one by which its content is known.
    func tag(of known: String, at key: String) -> String {
        guard let alias = aliases[key], alias.known == known else { return known }
        return alias.tag
    }

    /// Whether an object is a copy of another; nil when its content is known by no other ETag.
    func isCopy(_ copy: S3Object, of original: S3Object) -> Bool? {
        guard let alias = aliases[copy.key], alias.tag == copy.tag else { return nil }
        return alias.known == known(original)
    }

    func note(_ copies: [(key: String, tag: String, known: String)]) {
        aliases.note(copies.map { ($0.key, $0.tag == $0.known ? nil : Alias(tag: $0.tag, known: $0.known)) })
    }

    func remove(_ keys: [String]) { aliases.note(keys.map { ($0, nil) }) }
}
