import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// A part of a listing, in the order of the keys' bytes.
struct S3Listing: Sendable {
    /// Objects and common prefixes.
    enum Entry: Sendable, Hashable {
        case object(S3Object)
        case prefix(String)
    }
    var entries: [Entry] = []
    /// The token of the next part; nil at the end.
    var next: String?
    /// How many objects and prefixes are left out: their key is not UTF-8, or an object has no valid size or no ETag.
    var unreadable = 0

    func index(of key: String) -> Int? {
        let position = entries.position(of: key.utf8, by: \.key.utf8)
        return position < entries.count && entries[position].key.utf8.elementsEqual(key.utf8) ? position : nil
    }
}

/// Makes entries of the children of `ListBucketResult`.
final class ListingParser: Sendable {
    private struct State {
        var objects: [S3Object] = []
        var prefixes: [String] = []
        var isTruncated: Bool?
        var next: String?
        var isEncoded = false
        var unreadable = 0
    }

    private let host: String
    private let state = Mutex(State())

    init(host: String) {
        self.host = host
    }

    /// Forgets all that was taken, because the request is repeated.
    func discard() -> Bool {
        state.withLock { $0 = State() }
        return true
    }

    func take(_ elements: [XMLElement]) throws {
        try state.withLock { state in
            for element in elements {
                switch element.name.local {
                case "Contents":
                    if let object = object(element) { state.objects.append(object) } else { state.unreadable += 1 }
                case "CommonPrefixes":
                    guard let prefix = element.child("Prefix") else { throw wrong("a prefix without a name") }
                    state.prefixes.append(prefix.text)
                case "IsTruncated": state.isTruncated = try flag(element.trimmedText)
                case "NextContinuationToken": state.next = element.text
                case "EncodingType": state.isEncoded = element.trimmedText == "url"
                case "Code": throw wrong("an error where a listing should be")
                default: break
                }
            }
        }
    }

    /// Whether a listing goes on. A part that is taken for the last one would hide, and so remove, all that follows.
    private func flag(_ text: String) throws -> Bool {
        switch text.lowercased() {
        case "true", "1": return true
        case "false", "0": return false
        default: throw wrong("a listing that does not say whether it goes on")
        }
    }

    /// - Returns: nil for an object without a key, a valid size or an ETag. One such object must not hide all others.
    private func object(_ element: XMLElement) -> S3Object? {
        guard let key = element.child("Key")?.text, let size = element.child("Size").flatMap({ Int64($0.trimmedText) }),
            size >= 0, let tag = element.child("ETag")?.trimmedText
        else { return nil }
        let modified = element.child("LastModified").flatMap { HTTPDate.timestamp(iso8601: $0.trimmedText) }
        return S3Object(
            key: key, tag: tag, size: size,
            modified: modified.map { FileTimestamp(seconds: $0.seconds, nanoseconds: $0.nanoseconds) })
    }

    func finish(after token: String?) throws -> S3Listing {
        try state.withLock { state in
            var listing = S3Listing(unreadable: state.unreadable)
            guard let isTruncated = state.isTruncated else { throw wrong("a listing without an end") }
            if isTruncated {
                guard let next = state.next, !next.isEmpty, next != token else {
                    throw wrong("a listing that does not go on")
                }
                listing.next = next
            }
            func decoded(_ text: String) -> String? {
                guard state.isEncoded else { return text }
                // Some servers encode a blank as forms do.
                let bytes = PercentEncoding.decode(text.replacing("+", with: "%20"))
                return bytes.flatMap { String(validating: $0, as: UTF8.self) }
            }
            for object in state.objects {
                guard let key = decoded(object.key) else {
                    listing.unreadable += 1
                    continue
                }
                var whole = object
                whole.key = key
                listing.entries.append(.object(whole))
            }
            for prefix in state.prefixes {
                if let key = decoded(prefix) { listing.entries.append(.prefix(key)) } else { listing.unreadable += 1 }
            }
            listing.entries.sort { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            return listing
        }
    }

    private func wrong(_ what: String) -> FileProviderError {
        FileProviderError(.malformedResponse, "\(host) answers with \(what)")
    }
}

extension S3Listing.Entry {
    var key: String {
        switch self {
        case .object(let object): object.key
        case .prefix(let prefix): prefix
        }
    }
}
