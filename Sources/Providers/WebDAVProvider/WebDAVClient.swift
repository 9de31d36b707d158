import FileProvider
import Foundation
import HTTPTransport
import PathAddressing
import Synchronization

/// Requests to one server, with credentials where it wants them, and failures in the words of providers.
final class WebDAVClient: Sendable {
    /// The collection that is the root; its path ends in a slash.
    let base: HTTPURL
    let transport: HTTPTransport
    /// The names that its path consists of; nil when it is none.
    private let root: RemotePath?
    private let authorization: Authorization
    private static let mostRefusals = 6
    /// After so many a nonce is not what is wrong.
    private static let mostNonces = 3
    /// A server copies, moves or deletes much before it answers.
    static let longPatience = Duration.seconds(600)

    init(base: HTTPURL, transport: HTTPTransport, credentials: @escaping @Sendable () -> WebDAVCredentials?) {
        self.base = base
        root = Self.names(in: base.path).map(RemotePath.init)
        self.transport = transport
        authorization = Authorization(credentials)
    }

    /// An answer that wants to know who asks.
    private struct Refused: Error {
        var head: HTTPResponseHead
    }

    // MARK: - Addresses

    func url(of path: RemotePath, isDirectory: Bool = false) -> HTTPURL {
        var url = base
        url.path += path.names.map { PercentEncoding.encode($0) }.joined(separator: "/")
        if isDirectory, !path.names.isEmpty { url.path += "/" }
        return url
    }

    /// Where in the collection an `href` leads.
    ///
    /// - Returns: nil for what leads out of it, or cannot be a path.
    func path(of href: String, on page: HTTPURL) -> RemotePath? {
        root.flatMap { names(of: href, on: page, below: $0) }
    }

    /// Likewise in another collection of the server.
    func path(of href: String, on page: HTTPURL, in collection: HTTPURL) -> RemotePath? {
        Self.names(in: collection.path).flatMap { names(of: href, on: page, below: RemotePath($0)) }
    }

    private func names(of href: String, on page: HTTPURL, below top: RemotePath) -> RemotePath? {
        let path: String
        if Self.isPlainPath(href) {
            path = href
        } else {
            guard let url = page.resolving(href), url.host == base.host else { return nil }
            path = url.path
        }
        guard let names = Self.names(in: path), names.count >= top.names.count,
            RemotePath(Array(names.prefix(top.names.count))) == top
        else { return nil }
        return RemotePath(Array(names.dropFirst(top.names.count)))
    }

    /// Whether a reference is an absolute path and nothing else, as nearly all are: a listing has thousands.
    private static func isPlainPath(_ href: String) -> Bool {
        let bytes = href.utf8
        guard bytes.first == UInt8(ascii: "/"), bytes.dropFirst().first != UInt8(ascii: "/") else { return false }
        return bytes.allSatisfy { byte in
            byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "?") && byte != UInt8(ascii: "#")
                && byte != UInt8(ascii: ":") && byte != UInt8(ascii: "\\")
        }
    }

    private static func names(in path: String) -> [String]? {
        var parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst()
        if parts.last?.isEmpty == true { parts = parts.dropLast() }
        var names: [String] = []
        for part in parts {
            guard let bytes = PercentEncoding.decode(Substring(part)),
                let name = String(validating: bytes, as: UTF8.self)
            else { return nil }
            names.append(name)
        }
        return names
    }

    // MARK: - Requests

    /// Makes a request and reads all of the answer, of whatever status but 401.
    func send(
        _ method: String, _ url: HTTPURL, _ fields: HTTPFields = [:], body: HTTPBody? = nil,
        isLong: Bool = false
    ) async throws -> HTTPResponse {
        var request = HTTPRequest(method, url, fields: fields, body: body)
        if isLong { request.patience = Self.longPatience }
        var pause = Self.shortestPause
        while true {
            let response = try await authorized(request) { [transport] request in
                let response = try await transport.send(request)
                if response.status == 401 { throw Refused(head: response.head) }
                return response
            }
            // Some let nobody write while somebody else does, also when that is us; a lock of somebody's stays.
            guard response.status == 423, pause < Self.longestPause else { return response }
            if case .pieces = body { return response }
            try await Task.sleep(for: pause * Double.random(in: 0.5...1.5))
            pause *= 2
        }
    }

    private static let shortestPause = Duration.milliseconds(30)
    private static let longestPause = Duration.seconds(3)

    /// Asks for the properties of a resource, or of all in a collection.
    ///
    /// - Parameters:
    ///   - take: given what the answer tells, as it comes.
    ///   - what: what is asked for, for messages.
    ///   - isMuch: whether taking it may block, as for a disk.
    /// - Returns: the answer's head.
    /// - Throws: for an answer that makes no sense `malformedResponse`, and `serverUnreachable` when the root is answered
    ///   so, too: then it is not this server that answers, but a page to log in, say.
    func properties(
        _ url: HTTPURL, depth: Int, body: [UInt8], what: String, isMuch: Bool = false,
        take: @escaping @Sendable (DAVResource, HTTPResponseHead) throws -> Void
    ) async throws -> HTTPResponseHead {
        do {
            return try await askForProperties(url, depth: depth, body: body, what: what, isMuch: isMuch, take: take)
        } catch let foreign as Foreign {
            if url == base { throw FileProviderError(.serverUnreachable, foreign.failure.message) }
            do {
                _ = try await askForProperties(
                    base, depth: 0,
                    body: DAVResource.request(withIdentifiers: false, withQuota: false, withHeld: false), what: "/",
                    isMuch: false
                ) { _, _ in }
                // The page may have gone between the two.
                return try await askForProperties(
                    url, depth: depth, body: body, what: what, isMuch: isMuch, take: take)
            } catch let again as Foreign {
                guard again.isOfRoot else { throw foreign.failure }
                throw FileProviderError(.serverUnreachable, again.failure.message)
            }
        }
    }

    /// An answer that no WebDAV server gives.
    private struct Foreign: Error {
        var failure: FileProviderError
        /// Whether it was the root that was asked for.
        var isOfRoot: Bool
    }

    private func askForProperties(
        _ url: HTTPURL, depth: Int, body: [UInt8], what: String, isMuch: Bool,
        take: @escaping @Sendable (DAVResource, HTTPResponseHead) throws -> Void
    ) async throws -> HTTPResponseHead {
        let request = HTTPRequest(
            "PROPFIND", url,
            fields: ["Depth": String(depth), "Content-Type": "application/xml; charset=utf-8", "Accept": "*/*"],
            body: .bytes(body))
        let isOfRoot = url == base
        let count = Mutex(0)
        let answer = try await multistatus(
            request, isMuch: isMuch,
            take: { element, head in
                guard let resource = DAVResource(element) else { return }
                // RFC 4918 16: a server that has said less than there is.
                if resource.status == 507 {
                    throw FileProviderError(.malformedResponse, "\(head.url.host) lists '\(what)' only in part")
                }
                count.withLock { $0 += 1 }
                try take(resource, head)
            },
            failure: { response in
                let failure = Self.failure(response, of: what)
                return failure.code == .malformedResponse ? Foreign(failure: failure, isOfRoot: isOfRoot) : failure
            })
        guard answer.root.name.isCalled("multistatus", in: "DAV:") else {
            // What was taken would be taken twice.
            if count.withLock({ $0 }) > 0 { throw Self.nonsense(answer.head) }
            throw Foreign(failure: Self.nonsense(answer.head), isOfRoot: isOfRoot)
        }
        guard count.withLock({ $0 }) > 0 else {
            throw FileProviderError(.malformedResponse, "\(answer.head.url.host) says nothing of '\(what)'")
        }
        return answer.head
    }

    /// Makes a request that is answered by a multistatus.
    ///
    /// - Parameters:
    ///   - take: given what it consists of, as it comes.
    ///   - isMuch: whether taking it may block, as for a disk.
    ///   - failure: the error for any other answer but 401.
    func multistatus(
        _ request: HTTPRequest, isMuch: Bool = false,
        take: @escaping @Sendable (XMLElement, HTTPResponseHead) throws -> Void,
        failure: @escaping @Sendable (HTTPResponse) -> any Error
    ) async throws -> XMLAnswer {
        let head = Mutex<HTTPResponseHead?>(nil)
        return try await authorized(request) { [transport] request in
            try await transport.sendForXML(
                request, isMuch: isMuch,
                isWanted: { answer in
                    head.withLock { $0 = answer }
                    return answer.status == 207
                },
                take: { elements in
                    guard let head = head.withLock({ $0 }) else { return }
                    for element in elements { try take(element, head) }
                },
                failure: { response in
                    response.status == 401 ? Refused(head: response.head) : failure(response)
                })
        }
    }

    /// Fetches content.
    ///
    /// - Parameter check: looks at the answer's fields before the first byte is believed.
    func download(
        _ url: HTTPURL, range: Range<Int64>?, size: Int64?, what: String, into sink: any ContentSink,
        check: @escaping @Sendable (HTTPResponseHead) throws -> Void
    ) async throws -> HTTPResponseHead {
        // A coding would change the bytes and with them their number.
        let request = HTTPRequest("GET", url, fields: ["Accept-Encoding": "identity"])
        return try await authorized(request) { [transport] request in
            try await transport.download(
                HTTPDownload(
                    request, range: range, size: size, check: check,
                    failure: { response in
                        if response.status == 401 { return Refused(head: response.head) }
                        if response.status == 416 || response.status == 412 {
                            return FileProviderError(.versionNoLongerAvailable)
                        }
                        return Self.failure(response, of: what)
                    }), into: sink)
        }
    }

    private func authorized<Value: Sendable>(
        _ request: HTTPRequest, _ body: (HTTPRequest) async throws -> Value
    ) async throws -> Value {
        var refusals = 0
        while true {
            let pass = authorization.pass()
            var request = request
            request.authorizer = pass
            do {
                return try await body(request)
            } catch let refused as Refused {
                refusals += 1
                if case .pieces = request.body {
                    // They have gone: whoever gave them begins again.
                    try authorization.learn(refused.head, refused: pass)
                    throw FileProviderError(.notAuthenticated, "\(refused.head.url.host) wants other credentials")
                }
                guard refused.head.url.hasSameOrigin(as: base) else {
                    throw FileProviderError(.notAuthenticated, "\(refused.head.url.host) wants credentials of its own")
                }
                // Other requests may have learned each time that this one was refused.
                guard refusals < Self.mostRefusals else { throw authorization.refusal(by: refused.head.url.host) }
                try authorization.learn(refused.head, refused: pass, isAgain: refusals >= Self.mostNonces)
            }
        }
    }

    // MARK: - Failures

    /// What an answer means that is no success.
    static func failure(_ response: HTTPResponse, of what: String, isChange: Bool = false) -> FileProviderError {
        let host = response.head.url.host
        switch response.status {
        case 404, 410: return FileProviderError(.noSuchItem, "\(host) has no '\(what)'")
        case 401: return FileProviderError(.notAuthenticated, "\(host) wants other credentials")
        case 403:
            return isChange
                ? FileProviderError(.cannotSynchronize, "\(host) does not permit changing '\(what)'")
                : FileProviderError(.fileReadNoPermission, "\(host) does not permit reading '\(what)'")
        case 405,
            501 where isChange:
            return FileProviderError(.cannotSynchronize, "\(host) cannot be written (\(response.status))")
        case 409 where isChange: return FileProviderError(.noSuchItem, "\(host) has no directory for '\(what)'")
        case 413, 414:
            return FileProviderError(
                .cannotSynchronize, "\(host) does not take '\(what)': it is too large, or its name")
        case 423: return FileProviderError(.cannotSynchronize, "'\(what)' is locked on \(host)")
        case 507: return FileProviderError(.insufficientQuota, "\(host) has no room for '\(what)'")
        case 502, 503, 504:
            return FileProviderError(.serverUnreachable, "\(host) is not working at present (\(response.status))")
        case 408, 425, 429, 500, 505...599:
            return FileProviderError(
                .providerDomainTemporarilyUnavailable, "\(host) failed for '\(what)' (\(response.status))")
        case 200..<300: return nonsense(response.head)
        default:
            return FileProviderError(.malformedResponse, "\(host) answers \(response.status) for '\(what)'")
        }
    }

    private static func nonsense(_ head: HTTPResponseHead) -> FileProviderError {
        let kind = head.fields["Content-Type"].map { " (\($0.prefix(40)))" } ?? ""
        return FileProviderError(
            .malformedResponse,
            "\(head.url.host) answers something that is not WebDAV\(kind): another address, or a page to log in?")
    }
}
