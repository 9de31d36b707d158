import FileProvider
import PathAddressing

/// The messages of Docs/Protocol.md.
struct ProgramRequest<Parameters: Encodable & Sendable>: Encodable, Sendable {
    let jsonrpc = "2.0"
    /// Nil for a notification, which has no response.
    var id: Int?
    var method: String
    var params: Parameters
}

/// The part of a line that says what it is: a response has an `id` and no method, a notification a method and no `id`.
struct ProgramHeader: Decodable {
    struct Parameters: Decodable {
        var id: Int?
    }
    var jsonrpc: String
    var id: Int?
    var method: String?
    var params: Parameters?
    var error: ProgramFailure?
}

struct ProgramResponse<Value: Decodable>: Decodable {
    var result: Value
}

/// An error response.
struct ProgramFailure: Decodable, Error {
    struct Details: Decodable {
        /// The name of a ``FileProviderError/Code``.
        var code: String?
        /// Seconds after which the call may succeed.
        var retryAfter: Double?
        /// The present entry, if a condition did not hold.
        var entry: ProgramEntry?
    }
    var message: String
    var data: Details?
}

struct InitializeParameters: Encodable, Sendable {
    let version = ProgramProtocol.version
    let levels = ["paths"]
    var source: String
    /// The source without `NAME:`.
    var location: String
    var options: [String: String]
    var secrets: [String: String]
    /// The directory of content files.
    var directory: String
    var readOnly: Bool
}

struct InitializeResult: Decodable, Sendable {
    var version: Int
    var level: String
    var features: ProgramFeatures?
}

enum ProgramProtocol {
    static let version = 1
    /// The longest line in bytes: a page of a listing with the longest names fits several times.
    static let longestLine = 8 << 20
}

/// What a program can do. A missing field is false.
struct ProgramFeatures: Codable, Hashable, Sendable {
    var writing: Bool?
    var ranges: Bool?
    /// The program checks `ifAbsent`, `ifTag` and `ifEmpty` itself.
    var conditions: Bool?
    var symbolicLinks: Bool?
    var modified: Bool?
    var permissions: Bool?
    /// An equal tag means equal bytes.
    var strongTags: Bool?
    /// A tag depends on the bytes alone.
    var contentTags: Bool?
    var quota: Bool?
    /// The best number of concurrent calls.
    var calls: Int?

    var traits: RemoteTraits {
        var traits = RemoteTraits()
        traits.isWritable = writing ?? false
        traits.readsRanges = ranges ?? false
        traits.checksConditions = conditions ?? false
        traits.checksEmptiness = conditions ?? false
        traits.hasSymbolicLinks = symbolicLinks ?? false
        traits.storesModificationDates = modified ?? false
        traits.storesPermissions = permissions ?? false
        traits.tagsAreOfContent = contentTags ?? false
        traits.concurrentCalls = min(max(calls ?? 4, 1), 64)
        return traits
    }
}

struct PathParameters: Encodable, Sendable {
    var path: String
}

struct ListParameters: Encodable, Sendable {
    var path: String
    var page: String?
    var limit: Int
}

struct ListResult: Decodable, Sendable {
    var entries: [ProgramEntry]
    var next: String?
}

struct ReadParameters: Encodable, Sendable {
    var path: String
    var tag: String?
    var offset: Int64
    /// Nil for all.
    var length: Int64?
    var into: String
}

/// The parameters of every call that changes something.
struct ChangeParameters: Encodable, Sendable {
    var path: String
    var from: String?
    var size: Int64?
    var to: String?
    var target: String?
    var kind: String?
    var modified: Double?
    var permissions: UInt16?
    var ifAbsent: Bool?
    var ifTag: String?
    var ifEmpty: Bool?

    init(path: RemotePath) { self.path = path.text }
}

struct EntryResult: Decodable, Sendable {
    var entry: ProgramEntry
    var notStored: [String]?
}

struct QuotaResult: Decodable, Sendable {
    var free: Int64
    var total: Int64?
}

struct NoResult: Decodable, Sendable {}

struct NoParameters: Encodable, Sendable {}

struct CancelParameters: Encodable, Sendable {
    var id: Int
}

/// An item as a program describes it.
struct ProgramEntry: Decodable, Hashable, Sendable {
    var name: String
    var kind: String
    var size: Int64?
    var tag: String?
    /// Seconds since 1970.
    var modified: Double?
    var permissions: UInt16?
    var target: String?
    var id: String?
    var writable: Bool?

    /// The entry for the provider.
    ///
    /// - Parameter name: the name that was asked for; nil for the entry's own.
    /// - Throws: `malformedResponse` for an entry that cannot be.
    func entry(name asked: String? = nil, _ features: ProgramFeatures) throws(FileProviderError) -> RemoteEntry {
        func wrong(_ what: String) -> FileProviderError {
            FileProviderError(.malformedResponse, "the program describes '\(asked ?? name)' \(what)")
        }
        guard let kind = Self.kinds[kind] else { throw wrong("as a '\(self.kind)'") }
        if kind == .file, (size ?? -1) < 0 { throw wrong("as a file without a size") }
        if kind == .symbolicLink, target == nil { throw wrong("as a symbolic link without a target") }
        if (tag?.utf8.count ?? 0) > 1024 || (id?.utf8.count ?? 0) > 1024 { throw wrong("with too long a tag or id") }
        let date = modified.flatMap(Self.date)
        var attributes = RemoteAttributes(
            contentModificationDate: date, permissions: permissions.map { $0 & 0o7777 }, symbolicLinkTarget: target)
        if kind != .symbolicLink { attributes.symbolicLinkTarget = nil }
        var entry = RemoteEntry(
            name: asked ?? name, kind: kind, tag: [], isTagStrong: tag != nil && features.strongTags == true,
            stableIdentifier: id, size: kind == .file ? size : nil, attributes: attributes, isWritable: writable)
        if let tag {
            entry.tag = ProgramTag.bytes(tag)
        } else if kind == .file {
            entry.tag = Array("=\(size ?? 0)-\(date?.nanosecondsSince1970 ?? 0)".utf8)
        }
        return entry
    }

    /// Whether a directory can have a child with this name.
    var hasValidName: Bool {
        !name.isEmpty && name != "." && name != ".." && !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
    }

    static let kinds: [String: ItemKind] = ["file": .file, "directory": .directory, "symlink": .symbolicLink]

    /// Microseconds are what a number of JSON keeps.
    static func date(_ seconds: Double) -> FileTimestamp? {
        guard seconds.isFinite, abs(seconds) < 9e9 else { return nil }
        return FileTimestamp(nanosecondsSince1970: Int64((seconds * 1e6).rounded()) * 1000)
    }
}

/// A program's tag, marked so that it is not taken for one that the daemon made of size and date.
enum ProgramTag {
    static func bytes(_ text: String) -> [UInt8] { Array(":\(text)".utf8) }

    /// The program's own tag; nil for one that the daemon made.
    static func text(_ tag: [UInt8]) -> String? {
        tag.first == UInt8(ascii: ":") ? String(decoding: tag.dropFirst(), as: UTF8.self) : nil
    }
}

extension RemotePath {
    /// The path as the protocol has it: the names, separated by slashes; empty for the root.
    var text: String { names.joined(separator: "/") }
}

extension FileTimestamp {
    var seconds1970: Double { Double(nanosecondsSince1970 / 1000) / 1e6 }
}
