import FileProvider

package struct HTTPRequest: Sendable {
    package var method: String
    package var url: HTTPURL
    /// Without `Host`, `Content-Length` and `User-Agent`, which are added.
    package var fields: HTTPFields
    package var body: HTTPBody?
    /// When the request may be repeated.
    package var repetition: Repetition
    /// The statuses after which the request is repeated later, as far as the configuration allows.
    package var passingStatuses: Set<Int> = [429, 503]
    /// Called before each repetition, which comes seconds after the caller has looked at what the request changes. An error of it
    /// ends the request: another client has changed that meanwhile. Nil where the server checks the request's own condition.
    package var beforeRepetition: (@Sendable () async throws -> Void)?
    /// Whether redirects are followed: with the same method, a limited number of them, and to another server only to read,
    /// with no header of this request but `Range`; never from `https` to `http`. A change is followed only to the same path, with
    /// or without a slash at its end: at another one it would change what the request does not name, such as the directory above.
    package var followsRedirects = true
    /// The stall timeout, where it is not that of the configuration.
    package var patience: Duration?
    /// Whether a server may copy, move or delete much before it responds; of the copy of a file ``LongCopies`` decides it. The server has
    /// ``HTTPTransport/Configuration/longTimeout`` for that, and meanwhile the call is not expected to make progress.
    package var isLong = false
    /// Signs the request or adds credentials each time it is sent, and only to its own server.
    package var authorizer: (any RequestAuthorizer)?

    package enum Repetition: Sendable, Hashable {
        /// The request is idempotent.
        case harmless
        /// Only when the server has certainly not acted: there was no connection, or its response says so.
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

    /// Whether a method changes nothing (RFC 9110, 9.2.1).
    static func isSafe(_ method: String) -> Bool {
        ["GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT", "SEARCH"].contains(method)
    }

    /// A conditional change is not repeated: the condition may not hold the second time because of the first.
    private static func usualRepetition(of method: String, _ fields: HTTPFields) -> Repetition {
        switch method {
        case _ where isSafe(method): .harmless
        case "PUT", "DELETE", "PROPPATCH":
            ["If-Match", "If-None-Match", "If"].allSatisfy { fields[$0] == nil } ? .harmless : .ifNotDone
        default: .ifNotDone
        }
    }
}

/// Adds credentials or a signature to requests.
package protocol RequestAuthorizer: Sendable {
    /// Called before every attempt, with the request as it was given.
    func authorize(_ request: inout HTTPRequest) async throws
}

package enum HTTPBody: Sendable {
    case bytes([UInt8])
    /// A range of a file's content, read while it is sent. If the range includes the end, the content is confirmed before its
    /// last byte is sent.
    case content(ContentSource, Range<Int64>)
    /// Pieces that a closure returns until it returns nil, with their total length if it is known. A piece is requested when
    /// the previous one was sent, and only once: the request is never repeated.
    case pieces(count: Int64?, next: @Sendable () async throws -> [UInt8]?)

    /// All of a file's content.
    package static func content(_ source: ContentSource) -> HTTPBody { .content(source, 0..<source.size) }

    /// The number of bytes; nil if it is unknown.
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

package struct HTTPResponseHead: Sendable, Hashable {
    package var status: Int
    package var fields: HTTPFields
    /// The URL that sent it, after redirects.
    package var url: HTTPURL

    package var isSuccess: Bool { (200..<300).contains(status) }

    package var contentLength: Int64? { fields["Content-Length"].flatMap { Int64($0) } }

    /// The length of the whole content in a response to GET; nil where the server does not send it.
    package var wholeLength: Int64? { status == 206 ? ContentRange(fields["Content-Range"])?.total : contentLength }

    /// `Last-Modified`, in seconds since 1970.
    package var lastModified: Int64? { fields["Last-Modified"].flatMap { HTTPDate.seconds(from: $0) } }
}

package struct HTTPResponse: Sendable, Hashable {
    package var head: HTTPResponseHead
    package var body: [UInt8]

    package var status: Int { head.status }
    package var fields: HTTPFields { head.fields }
    package var text: String { String(decoding: body, as: UTF8.self) }
}
