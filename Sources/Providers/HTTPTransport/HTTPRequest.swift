import FileProvider

/// A question to a server.
package struct HTTPRequest: Sendable {
    package var method: String
    package var url: HTTPURL
    /// `Host`, `Content-Length` and `User-Agent` are seen to.
    package var fields: HTTPFields
    package var body: HTTPBody?
    /// When the request may be made again by itself.
    package var repetition: Repetition
    /// The answers that say "not now": waited for and asked again, as long as `repetition` and the configuration allow.
    package var passingStatuses: Set<Int> = [429, 503]
    /// Whether redirects are followed: with the method kept, a limited number of them, and to another server only to
    /// read, without any field of this request but `Range`; never from `https` to `http`.
    package var followsRedirects = true
    /// How long nothing may move, where that is not the usual time: a server copies or moves much before it answers.
    package var patience: Duration?
    /// Signs the request or adds credentials each time it goes out, and only to the server it is meant for.
    package var authorizer: (any RequestAuthorizer)?

    /// What is known about making a request twice.
    package enum Repetition: Sendable, Hashable {
        /// Twice is as good as once.
        case harmless
        /// Only when it is certain that the server has not acted: it could not be connected to, or it said so.
        case ifNotDone
    }

    package init(
        _ method: String, _ url: HTTPURL, fields: HTTPFields = [:], body: HTTPBody? = nil,
        repetition: Repetition? = nil
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
        self.repetition = repetition ?? Self.usualRepetition(of: method, fields)
        if body?.isGivenOnce == true {
            self.repetition = .ifNotDone
            passingStatuses = []
            followsRedirects = false
        }
    }

    /// What changes something on a condition is not made again: the second time the condition would not hold, because
    /// of the first.
    private static func usualRepetition(of method: String, _ fields: HTTPFields) -> Repetition {
        switch method {
        case "GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT", "SEARCH": .harmless
        case "PUT", "DELETE", "PROPPATCH":
            ["If-Match", "If-None-Match", "If"].allSatisfy { fields[$0] == nil } ? .harmless : .ifNotDone
        default: .ifNotDone
        }
    }
}

/// Gives requests what proves who makes them.
package protocol RequestAuthorizer: Sendable {
    /// Called before every attempt, with the request as it was given.
    func authorize(_ request: inout HTTPRequest) async throws
}

/// What a request brings along.
package enum HTTPBody: Sendable {
    case bytes([UInt8])
    /// A range of a file's content, read as it goes out. Before its last byte has gone the content is confirmed, when the
    /// range reaches to its end.
    case content(ContentSource, Range<Int64>)
    /// What comes piece by piece, until it gives nil: so many bytes in all, or nobody knows how many. It is asked for the
    /// next piece when the one before has gone, and once at the most: such a request is never made again by itself.
    case pieces(count: Int64?, next: @Sendable () async throws -> [UInt8]?)

    /// All of a file's content.
    package static func content(_ source: ContentSource) -> HTTPBody { .content(source, 0..<source.size) }

    /// How many bytes; nil where nobody knows.
    package var count: Int64? {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .content(_, let range): Int64(range.count)
        case .pieces(let count, _): count
        }
    }

    fileprivate var isGivenOnce: Bool {
        if case .pieces = self { return true }
        return false
    }
}

/// What a server answers before the body.
package struct HTTPResponseHead: Sendable, Hashable {
    package var status: Int
    package var fields: HTTPFields
    /// Where it came from at last, after redirects.
    package var url: HTTPURL

    package var isSuccess: Bool { (200..<300).contains(status) }

    package var contentLength: Int64? { fields["Content-Length"].flatMap { Int64($0) } }
}

/// A whole answer.
package struct HTTPResponse: Sendable, Hashable {
    package var head: HTTPResponseHead
    package var body: [UInt8]

    package var status: Int { head.status }
    package var fields: HTTPFields { head.fields }
    package var text: String { String(decoding: body, as: UTF8.self) }
}
