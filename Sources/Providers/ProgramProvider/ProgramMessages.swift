import FileProvider

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
        /// The bytes of an upload that were sent so far, of `progress`. A number that no integer can be does not end the program.
        var sent: Double?
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

struct QuotaResult: Decodable, Sendable {
    var free: Int64
    var total: Int64?
}

extension RemoteQuota {
    init(_ result: QuotaResult) { self.init(free: max(0, result.free), total: result.total) }
}

struct ThumbnailResult: Decodable, Sendable {
    /// The length of the image file; nil or 0 if the file has no thumbnail.
    var size: Int64?
}

struct NoResult: Decodable, Sendable {}

struct NoParameters: Encodable, Sendable {}

struct CancelParameters: Encodable, Sendable {
    var id: Int
}
