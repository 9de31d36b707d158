import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// Sends requests to one server, with credentials where it requires them, and maps failures to ``FileProviderError``.
final class WebDAVClient: Sendable {
    /// The root of the domain.
    let root: CollectionAddress
    let transport: HTTPTransport
    private let authorization: Authorization
    private static let mostRefusals = 6
    /// After so many refusals the nonce is not the cause.
    private static let mostNonces = 3

    init(base: HTTPURL, transport: HTTPTransport, credentials: @escaping @Sendable () -> WebDAVCredentials?) {
        root = CollectionAddress(base)
        self.transport = transport
        authorization = Authorization(credentials)
    }

    var host: String { root.url.host }

    private struct Unauthorized: Error {
        var head: HTTPResponseHead
    }

    // MARK: - Requests

    /// Makes a request and reads the whole response, of any status but 401.
    ///
    /// A resource that is locked is tried again for some seconds: some servers lock while another request writes, which may
    /// be one of ours. Another client's lock stays.
    ///
    /// - Parameters:
    ///   - isLong: whether the server may have to copy, move or delete much before it responds.
    ///   - recheck: called before each repetition, where the server does not check what the request changes.
    func send(
        _ method: String, _ url: HTTPURL, _ fields: HTTPFields = [:], body: HTTPBody? = nil,
        isLong: Bool = false, recheck: (@Sendable () async throws -> Void)? = nil
    ) async throws -> HTTPResponse {
        var request = HTTPRequest(method, url, fields: fields, body: body)
        request.beforeRepetition = recheck
        request.isLong = isLong
        var pause = Self.shortestPause
        while true {
            let response = try await authorized(request) { [transport] request in
                var response = try await transport.send(request)
                if response.status == 401 { throw Unauthorized(head: response.head) }
                if let status = Self.statusInside(response, to: method) { response.head.status = status }
                return response
            }
            guard response.status == 423, pause < Self.longestPause else { return response }
            if case .pieces = body { return response }
            try await Task.sleep(for: pause * Double.random(in: 0.5...1.5))
            try await recheck?()
            pause *= 2
        }
    }

    /// Requests a move.
    ///
    /// - Parameters:
    ///   - size: of the file, in bytes; nil where it is not known, and for a directory.
    ///   - recheck: as of ``send(_:_:_:body:isLong:recheck:)``.
    func move(
        _ source: HTTPURL, to target: HTTPURL, size: Int64?, _ fields: HTTPFields,
        recheck: (@Sendable () async throws -> Void)? = nil
    ) async throws -> HTTPResponse {
        var all = fields
        all["Destination"] = target.description
        return try await transport.longCopies.copying(size, to: target) { [all] isLong in
            try await send("MOVE", source, all, isLong: isLong, recheck: recheck)
        }
    }

    private static let shortestPause = Duration.milliseconds(30)
    private static let longestPause = Duration.seconds(3)

    /// Requests properties of one resource.
    ///
    /// - Parameter what: the resource, for messages.
    /// - Returns: the first resource of the response.
    /// - Throws: as ``propfind(_:depth:_:what:isMuch:take:discard:)``.
    func resource(
        at url: HTTPURL, _ properties: PropertyRequest, what: String
    ) async throws -> (resource: DAVResource, head: HTTPResponseHead) {
        let found = Mutex<DAVResource?>(nil)
        let head = try await propfind(
            url, depth: 0, properties, what: what, take: { resource, _ in found.withLock { $0 = $0 ?? resource } },
            discard: {
                found.withLock { $0 = nil }
                return true
            })
        guard let resource = found.withLock({ $0 }) else { throw Self.describesNothing(head, what) }
        // A server may lead everything that it does not know to its root. Of the root itself the caller says where it is.
        guard url == root.url || head.url.hasSamePlace(as: url) else {
            throw FileProviderError(
                .malformedResponse, "\(host) leads from '\(what)' to another place ('\(head.url.path.prefix(200))')")
        }
        return (resource, head)
    }

    /// Requests properties of the members of a collection.
    ///
    /// - Parameters:
    ///   - what: the collection, for messages.
    ///   - isWanted: the members that are returned.
    ///   - noteIgnored: called with each reference that is not a wanted member of the collection.
    /// - Throws: as ``propfind(_:depth:_:what:isMuch:take:discard:)``, and `malformedResponse` without the collection itself.
    func members(
        of path: RemotePath, in collection: CollectionAddress, _ properties: PropertyRequest, what: String,
        where isWanted: @escaping @Sendable (RemotePath) -> Bool = { _ in true },
        noteIgnored: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws -> [(path: RemotePath, resource: DAVResource)] {
        let found = Mutex((members: [(path: RemotePath, resource: DAVResource)](), own: DAVResource?.none))
        try await propfind(
            collection.url(of: path, isDirectory: true), depth: 1, properties, what: what,
            take: { resource, head in
                let there = collection.path(of: resource.href, on: head.url)
                if there == path { return found.withLock { $0.own = resource } }
                // A server may list `.` and `..`, and what is deleted member by member must be below.
                guard let there, there.parent == path, let name = there.name, RemotePath.isName(name), isWanted(there)
                else { return noteIgnored(resource.href) }
                // One that is not described is there as well: its directory is not empty.
                if !resource.isMissing { found.withLock { $0.members.append((there, resource)) } }
            },
            discard: {
                found.withLock { $0 = ([], nil) }
                return true
            })
        let (members, own) = found.withLock { $0 }
        guard let own, !own.isMissing else {
            throw FileProviderError(.malformedResponse, "\(host) does not say what '\(what)' is")
        }
        return members
    }

    /// Requests properties of a resource, or of a collection and its members.
    ///
    /// - Parameters:
    ///   - what: the resource, for messages.
    ///   - isMuch: `take` may block, for example for a disk.
    ///   - take: called with each resource as it arrives.
    ///   - discard: as in ``HTTPTransport/sendForXML(_:limits:isMuch:isWanted:take:discard:failure:)``.
    /// - Throws: `malformedResponse` for a response that is not WebDAV; `serverUnreachable` when the root is answered so,
    ///   too, because then another server answers, for example with a login page; `noSuchItem`.
    @discardableResult
    func propfind(
        _ url: HTTPURL, depth: Int, _ properties: PropertyRequest, what: String, isMuch: Bool = false,
        take: @escaping @Sendable (DAVResource, HTTPResponseHead) throws -> Void,
        discard: @escaping @Sendable () -> Bool
    ) async throws -> HTTPResponseHead {
        do {
            return try await propfindOnce(
                url, depth: depth, properties, what: what, isMuch: isMuch, take: take, discard: discard)
        } catch let error as FileProviderError where error.code == .fileReadNoPermission {
            if try await liesInAFile(url) { throw missing(what) }
            throw error
        } catch let foreign as Foreign {
            if url == root.url { throw FileProviderError(.serverUnreachable, foreign.failure.message) }
            do {
                _ = try await propfindOnce(
                    root.url, depth: 0, .usual, what: "/", isMuch: false, take: { _, _ in }, discard: { true })
            } catch let again as Foreign {
                throw FileProviderError(.serverUnreachable, again.failure.message)
            }
            // The login page may have gone between the two requests.
            do {
                return try await propfindOnce(
                    url, depth: depth, properties, what: what, isMuch: isMuch, take: take, discard: discard)
            } catch let again as Foreign {
                if again.status == 400, try await liesInAFile(url) { throw missing(what) }
                throw foreign.failure
            }
        }
    }

    private func missing(_ what: String) -> FileProviderError {
        FileProviderError(.noSuchItem, "\(host) has no '\(what)'")
    }

    /// For what lies below a file, and for a file that is asked for as a directory, Apache answers 400, and lighttpd 403.
    private func liesInAFile(_ url: HTTPURL) async throws -> Bool {
        guard var place = root.path(of: url.path, on: url) else { return false }
        while place != .root {
            let isCollection = Mutex(true)
            do {
                _ = try await propfindOnce(
                    root.url(of: place), depth: 0, .usual, what: place.name ?? "/", isMuch: false,
                    take: { resource, _ in isCollection.withLock { $0 = resource.isCollection } }, discard: { true })
                return isCollection.withLock { !$0 }
            } catch let foreign as Foreign {
                guard foreign.status == 400 else { return false }
            } catch let error as FileProviderError where error.code == .noSuchItem {
                return true
            } catch let error as FileProviderError {
                guard error.code == .fileReadNoPermission else { throw error }
            }
            place = place.parent
        }
        return false
    }

    /// A response that no WebDAV server sends.
    private struct Foreign: Error {
        var failure: FileProviderError
        /// Nil for one that is no error by its status.
        var status: Int?
    }

    private func propfindOnce(
        _ url: HTTPURL, depth: Int, _ properties: PropertyRequest, what: String, isMuch: Bool,
        take: @escaping @Sendable (DAVResource, HTTPResponseHead) throws -> Void,
        discard: @escaping @Sendable () -> Bool
    ) async throws -> HTTPResponseHead {
        let count = Mutex(0)
        let answer: XMLAnswer
        do {
            answer = try await multistatus(
                "PROPFIND", url, depth: depth, properties.body, isMuch: isMuch,
                take: { element, head in
                    guard let resource = DAVResource(element) else { return }
                    // RFC 4918, 16: the server has left something out.
                    if resource.status == 507 {
                        throw FileProviderError(.malformedResponse, "\(head.url.host) lists '\(what)' only in part")
                    }
                    count.withLock { $0 += 1 }
                    try take(resource, head)
                },
                discard: {
                    count.withLock { $0 = 0 }
                    return discard()
                },
                failure: { response in
                    let failure = Self.failure(response, of: what)
                    return failure.code == .malformedResponse
                        ? Foreign(failure: failure, status: response.status) : failure
                })
        } catch let error as FileProviderError {
            guard let failure = redirect(in: error, from: url) else { throw error }
            throw Foreign(failure: failure)
        }
        let isEmpty = count.withLock { $0 } == 0
        guard answer.root.name.isCalled("multistatus", in: "DAV:") else {
            // A second request would deliver the resources twice.
            throw isEmpty ? Foreign(failure: Self.noWebDAV(answer.head)) : Self.noWebDAV(answer.head)
        }
        if isEmpty { throw Self.describesNothing(answer.head, what) }
        return answer.head
    }

    private static func describesNothing(_ head: HTTPResponseHead, _ what: String) -> FileProviderError {
        FileProviderError(.malformedResponse, "\(head.url.host) says nothing of '\(what)'")
    }

    /// Makes a request whose response is a multistatus.
    ///
    /// - Parameters:
    ///   - take: called with each child of the root as it arrives.
    ///   - discard: as in ``HTTPTransport/sendForXML(_:limits:isMuch:isWanted:take:discard:failure:)``.
    ///   - isMuch: `take` may block, for example for a disk.
    ///   - failure: the error for any other response but 401.
    func multistatus(
        _ method: String, _ url: HTTPURL, depth: Int, _ body: [UInt8], isMuch: Bool = false,
        take: @escaping @Sendable (XMLElement, HTTPResponseHead) throws -> Void,
        discard: @escaping @Sendable () -> Bool,
        failure: @escaping @Sendable (HTTPResponse) -> any Error
    ) async throws -> XMLAnswer {
        let request = HTTPRequest(
            method, url,
            fields: ["Depth": String(depth), "Content-Type": "application/xml; charset=utf-8", "Accept": "*/*"],
            body: .bytes(body))
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
                discard: discard,
                failure: { response in
                    response.status == 401 ? Unauthorized(head: response.head) : failure(response)
                })
        }
    }

    /// Downloads content.
    ///
    /// - Parameter check: inspects the response's headers before the first byte is accepted.
    func download(
        _ url: HTTPURL, range: Range<Int64>?, size: Int64?, what: String, into sink: any ContentSink,
        check: @escaping @Sendable (HTTPResponseHead) throws -> Void
    ) async throws -> HTTPResponseHead {
        // A content coding would change the bytes and their number.
        let request = HTTPRequest("GET", url, fields: ["Accept-Encoding": "identity"])
        return try await authorized(request) { [transport] request in
            try await transport.download(
                HTTPDownload(
                    request, range: range, size: size, check: check,
                    failure: { response in
                        if response.status == 401 { return Unauthorized(head: response.head) }
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
            } catch let refused as Unauthorized {
                refusals += 1
                if case .pieces = request.body {
                    // The pieces were consumed: their source begins again.
                    try authorization.learn(refused.head, refused: pass)
                    throw FileProviderError(.notAuthenticated, "\(refused.head.url.host) wants other credentials")
                }
                guard refused.head.url.hasSameOrigin(as: root.url) else {
                    throw FileProviderError(.notAuthenticated, "\(refused.head.url.host) wants credentials of its own")
                }
                // Other requests may have learned each time that this one was refused.
                guard refusals < Self.mostRefusals else { throw authorization.refusal(by: refused.head.url.host) }
                // The server has done nothing, so nothing is looked at; a look would use up a nonce that is for one request.
                try authorization.learn(refused.head, refused: pass, isAgain: refusals >= Self.mostNonces)
            }
        }
    }

    // MARK: - Failures

    /// The error that a response without success means.
    static func failure(_ response: HTTPResponse, of what: String, isChange: Bool = false) -> FileProviderError {
        failure(response.head, of: what, isChange: isChange)
    }

    static func failure(_ head: HTTPResponseHead, of what: String, isChange: Bool = false) -> FileProviderError {
        let (host, status) = (head.url.host, head.status)
        switch status {
        case 404, 410: return FileProviderError(.noSuchItem, "\(host) has no '\(what)'")
        case 401: return FileProviderError(.notAuthenticated, "\(host) wants other credentials")
        case 403:
            return isChange
                ? FileProviderError(.cannotSynchronize, "\(host) does not permit changing '\(what)'")
                : FileProviderError(.fileReadNoPermission, "\(host) does not permit reading '\(what)'")
        // Tomcat's answer to a name with a backslash.
        case 400 where isChange:
            return FileProviderError(
                .malformedResponse, "\(host) answers 400 for '\(what)': it may not accept the name")
        case 405 where isChange, 501 where isChange:
            return FileProviderError(.cannotSynchronize, "\(host) cannot be written (\(status))")
        case 405, 501:
            return FileProviderError(
                .malformedResponse,
                "\(host) does not speak WebDAV at '\(what)' (\(status)): another path? Nextcloud's is "
                    + "/remote.php/dav/files/USER")
        case 409 where isChange: return FileProviderError(.noSuchItem, "\(host) has no directory for '\(what)'")
        case 413, 414:
            return FileProviderError(
                .cannotSynchronize, "\(host) does not take '\(what)': it is too large, or its name")
        case 423: return FileProviderError(.cannotSynchronize, "'\(what)' is locked on \(host)")
        case 507: return FileProviderError(.insufficientQuota, "\(host) has no room for '\(what)'")
        case 502, 503, 504:
            return FileProviderError(.serverUnreachable, "\(host) is not working at present (\(status))")
        case 408, 425, 429, 500, 505...599:
            return FileProviderError(
                .providerDomainTemporarilyUnavailable, "\(host) failed for '\(what)' (\(status))")
        case 200..<300: return noWebDAV(head)
        default:
            return FileProviderError(.malformedResponse, "\(host) answers \(status) for '\(what)'")
        }
    }

    private static func noWebDAV(_ head: HTTPResponseHead) -> FileProviderError {
        let kind = head.fields["Content-Type"].map { " (\($0.prefix(40)))" } ?? ""
        return FileProviderError(
            .malformedResponse,
            "\(head.url.host) answers something that is not WebDAV\(kind): another address, or a page to log in?")
    }
}
