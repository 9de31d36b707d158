import FileProvider
import FileProviderPaths
import HTTPTransport

/// An item of `operations/list` and `operations/stat`.
struct RcloneItem: Decodable, Sendable {
    var Name: String
    /// From where the listing began.
    var Path: String?
    /// -1 where the backend does not know it.
    var Size: Int64
    var ModTime: String?
    var IsDir: Bool
    var ID: String?
    /// The identifier below a wrapper such as `crypt`.
    var OrigID: String?
    var Hashes: [String: String]?

    /// The seconds for which a file may still be written without another time.
    private static let settlingTime: Int64 = 3

    /// The size in a tag that is no checksum.
    static func size(ofTag tag: [UInt8]) -> Int64? {
        guard !tag.contains(UInt8(ascii: ":")), let digits = tag.split(separator: UInt8(ascii: "-")).last else {
            return nil
        }
        return Int64(String(decoding: digits, as: UTF8.self))
    }

    private func checksum(_ features: RcloneFeatures) -> String? {
        features.hash.flatMap { name in Hashes?[name].flatMap { $0.isEmpty ? nil : "\(name):\($0)" } }
    }

    /// Whether it is a directory, or a file whose size the backend knows. Of documents of Google it does not.
    var hasKnownSize: Bool { IsDir || Size >= 0 }

    /// The item as a part of the directory that was listed.
    func part(_ features: RcloneFeatures) -> UInt64 {
        let version = IsDir ? "" : checksum(features) ?? "\(ModTime ?? "")-\(Size)"
        return DirectoryParts.digest(of: Path ?? Name, version: version)
    }

    func entry(_ features: RcloneFeatures) throws -> RemoteEntry {
        let modified = ModTime.flatMap { HTTPDate.timestamp(iso8601: $0) }
        let hash = checksum(features)
        guard hasKnownSize else {
            throw FileProviderError(.malformedResponse, "rclone does not know the size of '\(Name)'")
        }
        let tag = hash ?? "\(modified?.seconds ?? 0).\(modified?.nanoseconds ?? 0)-\(Size)"
        var entry = RemoteEntry(
            name: RcloneName.decode(Name), kind: IsDir ? .directory : .file, tag: IsDir ? [] : Array(tag.utf8),
            isTagStrong: hash != nil,
            stableIdentifier: features.hasStableIdentifiers ? OrigID ?? ID : nil, size: IsDir ? nil : Size,
            attributes: RemoteAttributes(
                contentModificationDate: modified.map {
                    FileTimestamp(seconds: $0.seconds, nanoseconds: $0.nanoseconds)
                }))
        if !IsDir, hash == nil, let modified {
            entry.isTagUnsettled = abs(FileTimestamp.now.seconds - modified.seconds) < Self.settlingTime
        }
        return entry
    }
}

/// What a remote of rclone's can do: `operations/fsinfo`, reduced.
struct RcloneFeatures: Codable, Hashable, Sendable {
    var hasQuota = false
    /// Objects below a prefix: a write is atomic, and there is no directory without an object.
    var isBucket = false
    var hasEmptyDirectories = true
    var movesFiles = true
    var movesDirectories = true
    /// The granularity of stored modification times in nanoseconds; nil where they are not stored, or only an extra request for
    /// each file reads them.
    var precision: Int64?
    /// The granularity where an extra request for each file reads them.
    var slowPrecision: Int64?
    /// A checksum that comes with each listing at no cost.
    var hash: String?
    /// Whether `ID` names the item, not one version of it.
    var hasStableIdentifiers = false
    /// Whether a checksum takes as long as reading the file, or a program on the server.
    var hasSlowHashes: Bool?

    init() {}

    init(_ information: FilesystemInformation) {
        let features = information.Features
        func has(_ name: String) -> Bool { features[name] ?? false }
        hasQuota = has("About")
        isBucket = has("BucketBased")
        hasEmptyDirectories = has("CanHaveEmptyDirectories")
        movesFiles = has("Move") || has("Copy")
        movesDirectories = has("DirMove")
        // rclone has a hundred years for times that are not stored.
        let longest: Int64 = 3600 * 1_000_000_000
        if information.Precision <= longest {
            if has("SlowModTime") { slowPrecision = information.Precision } else { precision = information.Precision }
        }
        if !has("SlowHash") { hash = (information.Hashes ?? []).first }
        hasSlowHashes = has("SlowHash")
        // An object store has identifiers of versions (B2), and a folder of this machine has none.
        hasStableIdentifiers = !isBucket && !has("IsLocal")
    }
}

/// The response of `operations/fsinfo`.
struct FilesystemInformation: Decodable, Sendable {
    var Features: [String: Bool]
    var Hashes: [String]?
    var Precision: Int64

    private enum CodingKeys: String, CodingKey { case Features, Hashes, Precision }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        // Newer versions may describe features by other values than Booleans.
        Features = try container.decode([String: Flag].self, forKey: .Features).compactMapValues(\.value)
        Hashes = try container.decodeIfPresent([String].self, forKey: .Hashes)
        Precision = try container.decode(Int64.self, forKey: .Precision)
    }

    private struct Flag: Decodable {
        var value: Bool?

        init(from decoder: any Decoder) throws {
            value = try? decoder.singleValueContainer().decode(Bool.self)
        }
    }
}

/// The parameters of a call of rclone's remote control.
struct RcloneCall: Encodable, Sendable {
    var fs: String?
    var remote: String?
    var opt: [String: RcloneValue]?
    var srcFs: String?
    var srcRemote: String?
    var dstFs: String?
    var dstRemote: String?
    var createEmptySrcDirs: Bool?
    var deleteEmptySrcDirs: Bool?
    var command: String?
    var arg: [String]?
    /// Options of this call.
    var config: [String: RcloneValue]?
    /// Which files are concerned.
    var filter: [String: RcloneValue]?
    /// The group of transfers that the call's are counted in.
    var statsGroup: String?
    /// The group of transfers that is asked for.
    var group: String?

    private enum CodingKeys: String, CodingKey {
        case fs, remote, opt, srcFs, srcRemote, dstFs, dstRemote, createEmptySrcDirs, deleteEmptySrcDirs, command, arg
        case group
        case config = "_config"
        case filter = "_filter"
        case statsGroup = "_group"
    }
}

enum RcloneValue: Encodable, Hashable, Sendable {
    case flag(Bool)
    case text(String)
    case list([String])

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .flag(let value): try container.encode(value)
        case .text(let value): try container.encode(value)
        case .list(let value): try container.encode(value)
        }
    }
}

struct RcloneListing: Decodable, Sendable { var list: [RcloneItem]? }
struct RcloneStat: Decodable, Sendable { var item: RcloneItem? }
struct RcloneNothing: Decodable, Sendable {}
struct RcloneTransfers: Decodable, Sendable { var bytes: Int64 }
struct RcloneVersion: Decodable, Sendable { var version: String }
struct RcloneCommandResult: Decodable, Sendable {
    var error: Bool?
    var result: String?
}
struct RcloneQuota: Decodable, Sendable {
    var total: Int64?
    var used: Int64?
    var free: Int64?

    /// The free and the total bytes; nil where the backend does not say them. It may say any numbers.
    var quota: RemoteQuota? {
        guard let total = total.map({ max(0, $0) }), let free = free ?? used.map({ total - max(0, $0) }) else {
            return nil
        }
        return RemoteQuota(free: max(0, free), total: total)
    }
}
