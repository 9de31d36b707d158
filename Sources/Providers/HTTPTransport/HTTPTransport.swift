import AsyncHTTPClient
import FileProvider
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import Synchronization

/// Requests to the servers of one domain, over persistent connections, by HTTP/2 where it is offered, with verified TLS,
/// through the proxies of the environment.
///
/// Idempotent requests are repeated with backoff. Only a stall is a timeout: a connection that is not established, a transfer
/// in which no byte moves in either direction. Cancelling a task cancels its request at once.
///
/// All calls throw ``FileProviderError``s: `serverUnreachable`, `timedOut`, `notAuthenticated` (of a proxy),
/// `malformedResponse`, `userCancelled`; messages name the host and the cause, never a field or a query.
package final class HTTPTransport: Sendable {
    package struct Configuration: Sendable {
        /// The largest number of concurrent requests. The present number adapts to the server; see ``ConcurrencyLimit``.
        package var connections = 16
        package var connectTimeout: Duration = .seconds(10)
        /// The time without a moved byte in either direction after which a request fails.
        package var stallTimeout: Duration = .seconds(30)
        /// The same for a request that is long: ``HTTPRequest/isLong``.
        package var longTimeout: Duration = .seconds(600)
        /// The number of bytes of a body that a server stores in a second, at least. A server, or a proxy in front of it, may copy all
        /// that it has received before it responds; it has at least ``stallTimeout`` for that, and at most ten minutes.
        package var storageRate: Int64 = 5_000_000
        package var retries = Retries()
        package var redirects = 5
        package var userAgent = "yonder"
        /// Has the proxy variables, `SSL_CERT_FILE` and `SSL_CERT_DIR`.
        package var environment: [String: String] = ProcessInfo.processInfo.environment

        package init() {}
    }

    package let configuration: Configuration
    package let logger: Logger
    /// Asked before each request that copies or moves a file.
    package let longCopies: LongCopies
    private let clients: HTTPClients
    private let gate: CallGate

    package init(_ configuration: Configuration = Configuration(), logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        longCopies = LongCopies(ordinaryTime: configuration.stallTimeout)
        let proxies = ProxySettings(environment: configuration.environment)
        for complaint in proxies.complaints { logger.warning("\(complaint)") }
        clients = HTTPClients(
            connections: configuration.connections, connectTimeout: configuration.connectTimeout,
            environment: configuration.environment, proxies)
        gate = CallGate(configuration.connections)
    }

    /// Closes all connections. Requests in flight fail with `userCancelled`.
    package func close() async {
        await clients.close()
    }

    /// Makes a request and reads the whole response.
    ///
    /// - Parameters:
    ///   - limit: the largest number of bytes in the body; `malformedResponse` for more.
    ///   - isRead: whether the body is read. One that is not is empty in the result.
    /// - Returns: a response of any status, after redirects and retries.
    package func send(
        _ request: HTTPRequest, bodyLimit limit: Int = 4 << 20,
        readingBody isRead: @escaping @Sendable (HTTPResponseHead) -> Bool = { _ in true }
    ) async throws -> HTTPResponse {
        try await exchange(request, mayReceiveAgain: { true }) { head, body in
            guard isRead(head) else { return HTTPResponse(head: head, body: []) }
            return HTTPResponse(head: head, body: try await body.all(upTo: limit))
        }
    }

    /// Makes a request and passes the response on as it arrives.
    ///
    /// - Parameters:
    ///   - mayReceiveAgain: whether the request may be repeated after `receive` was called. Called when the response broke.
    ///   - receive: called with a response of any status, after redirects and retries. The part of the body that it does not
    ///     read is discarded; its errors are thrown.
    func exchange<Value: Sendable>(
        _ request: HTTPRequest, mayReceiveAgain: @escaping @Sendable () -> Bool = { false },
        receiving receive: @escaping @Sendable (HTTPResponseHead, HTTPBodyReader) async throws -> Value
    ) async throws -> Value {
        var request = request
        let origin = request.url
        var attempts = 0
        var redirects = 0
        do {
            while true {
                attempts += 1
                let (outgoing, attempt, follows) = (request, attempts, redirects)
                let hasBegun = Atomic<Bool>(false)
                do {
                    let (outcome, isExtra) = try await gate.run { pass in
                        let outcome = try await self.attempt(outgoing, from: origin, attempt, redirects: follows, pass)
                        {
                            hasBegun.store(true, ordering: .relaxed)
                            return try await receive($0, $1)
                        }
                        return (outcome, pass.isExtra)
                    }
                    switch outcome {
                    case .answered(let value): return value
                    case .moved(let url):
                        redirects += 1
                        attempts -= 1
                        request = try Self.redirected(request, to: url)
                    case .notNow(let status, let pause):
                        if isExtra { attempts -= 1 }
                        logger.debug("\(request.method) \(request.url.path): \(status), again in \(pause)")
                        try await Task.sleep(for: pause)
                        try await request.beforeRepetition?()
                    }
                } catch let failure as TransportFailure {
                    guard failure.isBroken, request.repetition == .harmless,
                        let pause = configuration.retries.pause(after: attempts),
                        !hasBegun.load(ordering: .relaxed) || mayReceiveAgain()
                    else { throw failure }
                    logger.debug("\(request.method) \(request.url.path): \(failure.error.message), again in \(pause)")
                    try await Task.sleep(for: pause)
                    try await request.beforeRepetition?()
                }
            }
        } catch let failure as TransportFailure {
            throw Task.isCancelled ? FileProviderError(.userCancelled) : failure.error
        } catch is CancellationError {
            throw FileProviderError(.userCancelled)
        }
    }

    private enum Outcome<Value: Sendable>: Sendable {
        case answered(Value)
        case moved(HTTPURL)
        case notNow(status: Int, pause: Duration)
    }

    /// Makes a request once, with a watchdog for stalls.
    private func attempt<Value: Sendable>(
        _ request: HTTPRequest, from origin: HTTPURL, _ attempt: Int, redirects: Int, _ pass: CallGate.Pass,
        receiving receive: @escaping @Sendable (HTTPResponseHead, HTTPBodyReader) async throws -> Value
    ) async throws -> Outcome<Value> {
        let movement = Movement(
            limit: request.isLong ? configuration.longTimeout : request.patience ?? configuration.stallTimeout,
            storageRate: configuration.storageRate)
        // Until the end of the response: S3 sends its status at once, and the result when the object is copied.
        let waiting = request.isLong ? CallContext.current : nil
        waiting?.beginWaiting()
        defer { waiting?.endWaiting() }
        return try await withThrowingTaskGroup(of: Outcome<Value>.self) { group in
            group.addTask {
                try await self.perform(
                    request, from: origin, attempt, redirects: redirects, movement, pass, receiving: receive)
            }
            group.addTask {
                let time = try await movement.waitForStall()
                throw Stall(time: time)
            }
            defer { group.cancelAll() }
            do {
                guard let outcome = try await group.next() else { throw CancellationError() }
                return outcome
            } catch let stall as Stall {
                pass.noteOverload()
                throw TransportFailure(
                    FileProviderError(
                        .timedOut, "\(request.url.host) makes no progress: nothing moved for \(stall.time)"),
                    isBroken: false)
            }
        }
    }

    private struct Stall: Error {
        var time: Duration
    }

    private func perform<Value: Sendable>(
        _ request: HTTPRequest, from origin: HTTPURL, _ attempt: Int, redirects: Int, _ movement: Movement,
        _ pass: CallGate.Pass,
        receiving receive: @escaping @Sendable (HTTPResponseHead, HTTPBodyReader) async throws -> Value
    ) async throws -> Outcome<Value> {
        var request = request
        if Self.mayHaveCredentials(request.url, of: origin) { try await request.authorizer?.authorize(&request) }
        let upload = UploadFailure()
        let response: HTTPClientResponse
        do {
            defer { movement.endStorage() }
            response = try await clients.client(for: request.url)
                .execute(outgoing(request, movement, upload), deadline: .distantFuture)
        } catch {
            // The cause of the aborted upload, rather than that it was aborted.
            if let failure = upload.error { throw failure }
            var failure = TransportFailure(error, host: request.url.host)
            // No head was accepted. The bytes may be the rest of an earlier response on a kept connection: another one decides.
            if error is HTTPParserError { failure.isBroken = true }
            if failure.error.code == .serverUnreachable { pass.noteOverload() }
            throw failure
        }
        var fields = HTTPFields()
        for (name, value) in response.headers { fields.add(name, value) }
        let head = HTTPResponseHead(status: Int(response.status.code), fields: fields, url: request.url)
        let body = HTTPBodyReader(response.body, movement: movement, host: request.url.host)
        if [429, 503].contains(head.status) {
            pass.noteOverload()
        } else {
            pass.noteAnswer(Self.kind(of: request, head))
            CallContext.current?.noteAnswer()
        }

        if request.passingStatuses.contains(head.status) {
            let requested = Retries.requestedPause(fields["Retry-After"])
            if let pause = configuration.retries.pause(after: attempt, requested: requested) {
                await body.drain()
                return .notNow(status: head.status, pause: pause)
            }
        }
        if request.followsRedirects, let target = try redirect(request, head, soFar: redirects) {
            await body.drain()
            return .moved(target)
        }
        return .answered(try await receive(head, body))
    }

    /// The kind of requests whose response times are compared; nil for one with much content in it or in its response.
    private static func kind(of request: HTTPRequest, _ head: HTTPResponseHead) -> String? {
        let sent = request.body.map { $0.count ?? .max } ?? 0
        guard sent <= largestTimed, head.contentLength ?? 0 <= largestTimed || request.method == "HEAD" else {
            return nil
        }
        return "\(request.method) \(request.url.query == nil ? "" : "?")\(request.fields["Depth"] ?? "")"
    }

    private static let largestTimed: Int64 = 64 << 10

    private func outgoing(
        _ request: HTTPRequest, _ movement: Movement, _ failure: UploadFailure
    ) throws -> HTTPClientRequest {
        var outgoing = HTTPClientRequest(url: request.url.description)
        outgoing.method = HTTPMethod(rawValue: request.method)
        for field in request.fields { outgoing.headers.add(name: field.name, value: field.value) }
        // The client sends none to a socket.
        if request.url.socketPath != nil { outgoing.headers.add(name: "Host", value: request.url.host) }
        if request.fields["User-Agent"] == nil {
            outgoing.headers.add(name: "User-Agent", value: configuration.userAgent)
        }
        switch request.body {
        case nil: break
        case .bytes(let bytes): outgoing.body = .bytes(ByteBuffer(bytes: bytes))
        case .content(let source, let range):
            outgoing.body = .stream(
                UploadStream(.reading(source, range), movement, failure), length: .known(Int64(range.count)))
        case .pieces(let count, let next):
            outgoing.body = .stream(
                UploadStream(.calling(next), movement, failure), length: count.map { .known($0) } ?? .unknown)
        }
        return outgoing
    }
}
