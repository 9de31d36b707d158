import FileProvider
import PathAddressing

/// The messages of Docs/Protocol.md, without those of one level.
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
        /// The call, of `progress`.
        var id: Int?
        /// The error, of `resolved`.
        var code: String?
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
        /// The present item, on the level items.
        var item: ProgramItem?
    }
    var message: String
    var data: Details?
}

/// What a program says on its own.
enum ProgramNotice: Hashable, Sendable {
    /// The remote has changes.
    case changed
    /// The cause of an error has been removed.
    case resolved(FileProviderError.Code)
}

struct InitializeParameters: Encodable, Sendable {
    let version = ProgramProtocol.version
    var levels: [String]
    var source: String
    /// The source without `NAME:`.
    var location: String
    var options: [String: String]
    var secrets: [String: String]
    /// The directory of content files.
    var directory: String
    var readOnly: Bool
}

/// What a program has declared at its start.
struct InitializeResult: Codable, Hashable, Sendable {
    var version: Int
    /// One of ``ProgramProtocol/levels``.
    var level: String
    var features: ProgramFeatures?
}

enum ProgramProtocol {
    static let version = 1
    static let items = "items"
    static let paths = "paths"
    static let levels = [items, paths]
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

    // Of the level items, with the names of ``ProviderFeatures``.
    var changeFeed: Bool?
    var trash: Bool?
    var documentEnumeration: Bool?
    var datesMakeVersions: Bool?
    var directoryVersionsCoverTrees: Bool?

    private var concurrentCalls: Int { min(max(calls ?? 4, 1), 64) }

    /// On the level items.
    var features: ProviderFeatures {
        ProviderFeatures(
            partialContentFetching: ranges ?? false, changeFeed: changeFeed ?? false, writing: writing ?? false,
            trash: trash ?? false && writing ?? false, conditionalWrites: conditions ?? false,
            documentEnumeration: documentEnumeration ?? false, datesMakeVersions: datesMakeVersions ?? false,
            directoryVersionsCoverTrees: directoryVersionsCoverTrees ?? false, concurrentCalls: concurrentCalls)
    }

    /// On the level paths.
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
        traits.concurrentCalls = concurrentCalls
        return traits
    }
}

struct QuotaResult: Decodable, Sendable {
    var free: Int64
    var total: Int64?
}

extension RemoteQuota {
    init(_ result: QuotaResult) { self.init(free: max(0, result.free), total: result.total) }
}

struct NoResult: Decodable, Sendable {}

struct NoParameters: Encodable, Sendable {}

struct CancelParameters: Encodable, Sendable {
    var id: Int
}
