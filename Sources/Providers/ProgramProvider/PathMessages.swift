import FileProvider
import FileProviderPaths

// The messages of the level paths of Docs/Protocol.md.

struct PathParameters: Encodable, Sendable {
    var path: String
}

struct ListParameters: Encodable, Sendable {
    var path: String
    var page: String?
    var limit: Int
}

struct ListResult: Decodable, Sendable {
    var entries: [ListElement<ProgramEntry>]
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

struct ThumbnailParameters: Encodable, Sendable {
    var path: String
    var width: Int
    var height: Int
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

    static let kinds: [String: ItemKind] = ["file": .file, "directory": .directory, "symlink": .symbolicLink]

    static func name(of kind: ItemKind) -> String { kinds.first { $0.value == kind }?.key ?? "file" }

    /// Microseconds are what a number of JSON keeps.
    static func date(_ seconds: Double) -> FileTimestamp? {
        guard seconds.isFinite, abs(seconds) < 9e9 else { return nil }
        return FileTimestamp(nanosecondsSince1970: Int64((seconds * 1e6).rounded()) * 1000)
    }
}

extension ListElement<ProgramEntry> {
    /// The entry for the provider.
    ///
    /// - Throws: `malformedResponse` for one that cannot be.
    func entry(_ features: ProgramFeatures) throws(FileProviderError) -> RemoteEntry {
        switch self {
        case .usable(let entry) where RemotePath.isName(entry.name): return try entry.entry(features)
        case .usable(let entry):
            throw FileProviderError(.malformedResponse, "Linux does not allow the name '\(entry.name)'")
        case .unusable(let texts, let mistake):
            throw FileProviderError(
                .malformedResponse, "the program describes '\(texts["name"] ?? "")' with \(mistake)")
        }
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
