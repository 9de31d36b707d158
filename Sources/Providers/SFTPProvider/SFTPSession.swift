import Dispatch
import FileProvider
import Foundation
import Synchronization
import Syscalls
import SystemPackage

/// A connection to an SFTP server through a child process. Any number of requests may be in flight.
final class SFTPSession: Sendable {
    private struct State {
        var lastRequest: UInt32 = 0
        var waiting: [UInt32: SFTPRequest] = [:]
        var end: FileProviderError?
        var isGreeted = false
        var errors: [UInt8] = []
        var extensions: Set<String> = []
        var window = SFTPWindow()
        /// When the server last sent something, or the first request was sent that waits for an answer.
        var heardAt = ContinuousClock.now
        var isWatched = false
        /// What every server takes in one message.
        var longestPiece: Int64 = 32_768
    }

    private let process: ChildProcess
    /// The threads of the session keep it: nothing is read when they are closed.
    private let pipes: ProgramPipes
    private let errorsEnded = DispatchGroup()
    private let writing = DispatchQueue(label: "yonder.sftp.write")
    private let state = Mutex(State())
    private let host: String
    private let patience: Duration
    /// How long a server may be silent, all answers to requests being late. ssh notices a dead line; a program that hangs on the
    /// server, as on a disk that does not answer, is noticed here.
    static let usualPatience = Duration.seconds(60)
    /// How long the program may take to end.
    private static let timeToEnd = Duration.seconds(5)
    /// Flushing a large file to a slow disk takes time.
    private static let timesWhileFlushing = 10

    private init(_ process: ChildProcess, _ pipes: ProgramPipes, host: String, patience: Duration) {
        (self.process, self.pipes, self.host, self.patience) = (process, pipes, host, patience)
        errorsEnded.enter()
        Thread.detachNewThread { [self] in
            collectErrors()
            errorsEnded.leave()
        }
        Thread.detachNewThread { [self] in receive() }
    }

    deinit { pipes.closeAll() }

    private static func start(
        _ command: [String], environment: [String: String], host: String, patience: Duration
    ) async throws -> SFTPSession {
        let launch = ChildProcess.Launch(command[0], Array(command.dropFirst()), environment: environment)
        do {
            let (process, pipes) = try await ChildProcess.startWithPipes(launch)
            return SFTPSession(process, pipes, host: host, patience: patience)
        } catch {
            throw FileProviderError(.serverUnreachable, "'\(command[0])' cannot be started: \(error)")
        }
    }

    /// Starts the program, and agrees on the version.
    ///
    /// - Parameter patience: how long the server may be silent while requests wait; then the session ends.
    static func open(
        _ command: [String], environment: [String: String], host: String, patience: Duration = usualPatience
    ) async throws -> SFTPSession {
        let session = try await start(command, environment: environment, host: host, patience: patience)
        do {
            var writer = SFTPWriter()
            writer.append(SFTPMessage.initialize)
            writer.append(UInt32(3))
            let extensions = try await session.send(writer.bytes, as: 0).reply().extensions()
            session.state.withLock { ($0.extensions, $0.isGreeted) = (extensions, true) }
            try await session.askForLimits()
            return session
        } catch {
            session.close()
            throw error
        }
    }

    var isOpen: Bool { state.withLock { $0.end == nil } }

    func has(_ name: String) -> Bool { state.withLock { $0.extensions.contains(name) } }

    /// Does without an extension that the server has announced and does not support: a proxy may pass the announcement on, and not the
    /// request.
    func forgetExtension(_ name: String) { state.withLock { _ = $0.extensions.remove(name) } }

    /// The most bytes of the next READ or WRITE: what the server takes, and not more than the line carries in a moment.
    var pieceLength: Int64 { state.withLock { min($0.longestPiece, $0.window.pieceLength) } }

    /// Whether other connections may carry more than this one alone.
    var isWide: Bool { state.withLock { $0.window.isWide } }

    /// Whether the line takes more bytes of contents now.
    func hasRoom(for count: Int64) -> Bool { state.withLock { $0.window.hasRoom(for: count) } }

    private func askForLimits() async throws {
        guard has("limits@openssh.com") else { return }
        // The longest message, READ and WRITE; 0 where there is no limit.
        let limits: [UInt64]
        do {
            limits = try await request(SFTPMessage.extended, [Array("limits@openssh.com".utf8)]).numbers(3)
        } catch is SFTPStatus {
            // A proxy may pass the announcement on, and not the request.
            return
        }
        let longest = limits.map { $0 == 0 ? 261_120 : Int64(clamping: $0) }
        // A message has a handle and numbers besides.
        let length = min(longest[0] - 1024, longest[1], longest[2], 261_120)
        state.withLock { $0.longestPiece = max($0.longestPiece, length) }
    }

    func close() { end(FileProviderError(.serverUnreachable, "the connection was closed")) }

    /// Sends a request, and waits for the response.
    func request(
        _ type: UInt8, _ strings: [[UInt8]], _ build: (inout SFTPWriter) -> Void = { _ in }
    ) async throws -> SFTPReply {
        try Task.checkCancellation()
        return try await send(type, strings, build).reply()
    }

    /// Sends a request. Requests of one caller are sent in their order.
    ///
    /// - Parameters:
    ///   - strings: what it begins with.
    ///   - contentLength: the bytes of content in the request, or in its response.
    ///   - isFlush: whether the server may take long for it.
    ///   - build: writes the rest.
    func send(
        _ type: UInt8, _ strings: [[UInt8]], contentLength: Int64 = 0, isFlush: Bool = false,
        _ build: (inout SFTPWriter) -> Void = { _ in }
    ) -> SFTPRequest {
        let identifier = state.withLock { state in
            state.lastRequest = state.lastRequest == .max ? 1 : state.lastRequest + 1
            return state.lastRequest
        }
        var writer = SFTPWriter()
        writer.append(type)
        writer.append(identifier)
        for string in strings { writer.append(string) }
        build(&writer)
        return send(
            writer.bytes, as: identifier, SFTPRequest(contentLength: contentLength, isFlush: isFlush))
    }

    /// Sends a request without waiting for the response.
    func closeHandle(_ handle: [UInt8]) {
        _ = send(SFTPMessage.close, [handle])
    }

    private func send(
        _ message: [UInt8], as identifier: UInt32, _ request: SFTPRequest = SFTPRequest()
    ) -> SFTPRequest {
        let (end, mustWatch) = state.withLock { state in
            guard state.end == nil else { return (state.end, false) }
            if state.waiting.isEmpty { state.heardAt = .now }
            state.waiting[identifier] = request
            state.window.begin(request.contentLength)
            return (nil, !exchange(&state.isWatched, with: true))
        }
        if mustWatch { watch() }
        if let end {
            request.answer(.failure(end))
            return request
        }
        var writer = SFTPWriter()
        writer.append(message)
        let bytes = writer.bytes
        writing.async { [self] in
            do {
                try pipes.input.writeAll(bytes)
            } catch {
                // The end of the output says why.
                process.send(signal: SIGTERM)
            }
        }
        return request
    }

    /// As long as requests wait, ends the session when the server is silent for too long.
    private func watch() {
        Task { [weak self, patience] in
            while let pause = self?.restOfPatience(), pause > .zero {
                try? await Task.sleep(for: min(pause, patience))
            }
        }
    }

    /// How long the server may be silent from now on; nil when nothing waits any more, or the session has ended.
    private func restOfPatience() -> Duration? {
        let rest = state.withLock { state -> Duration? in
            guard state.end == nil, !state.waiting.isEmpty else {
                state.isWatched = false
                return nil
            }
            let isFlushing = state.waiting.values.contains(where: \.isFlush)
            return state.heardAt + patience * (isFlushing ? Self.timesWhileFlushing : 1) - .now
        }
        if let rest, rest <= .zero {
            end(FileProviderError(.serverUnreachable, "'\(host)' has stopped answering"))
        }
        return rest
    }

    // MARK: - Receiving, on threads of their own

    private func collectErrors() {
        while case let bytes = pipes.errors.nextBytes(atMost: 1 << 18), !bytes.isEmpty {
            state.withLock { $0.errors = ($0.errors + bytes).suffix(4096) }
        }
    }

    private func receive() {
        var buffer = SFTPBuffer()
        while case let bytes = pipes.output.nextBytes(atMost: 1 << 18), !bytes.isEmpty {
            buffer.append(bytes)
            state.withLock { $0.heardAt = .now }
            do {
                while let reply = try buffer.next() { take(reply) }
            } catch {
                return end(
                    FileProviderError(
                        .malformedResponse,
                        "the response of '\(host)' is not SFTP: a text that its shell prints at login may be in front of it"
                    ))
            }
        }
        // Another process that the program has started may keep its standard error open.
        _ = errorsEnded.wait(timeout: .now() + 1)
        let (said, isGreeted) = state.withLock { (String(decoding: $0.errors, as: UTF8.self), $0.isGreeted) }
        let error = SSHFailure.error(said, host: host)
        end(
            isGreeted && error.code == .notAuthenticated
                ? FileProviderError(.serverUnreachable, "the connection to '\(host)' broke") : error)
    }

    private func take(_ reply: SFTPReply) {
        let request = state.withLock { state in
            let request = state.waiting.removeValue(forKey: reply.identifier)
            if let request { state.window.end(request.contentLength, after: request.sent.duration(to: .now)) }
            return request
        }
        // A response to no request is ignored: to close each handle in one would be another request that waits.
        guard let request else { return }
        if !request.answer(.success(reply)), let handle = try? reply.handle() {
            // The caller was cancelled.
            closeHandle(handle)
        }
    }

    private func end(_ error: FileProviderError) {
        let (waiting, isFirst) = state.withLock { state in
            let isFirst = state.end == nil
            state.end = state.end ?? error
            return (exchange(&state.waiting, with: [:]).values, isFirst)
        }
        for request in waiting { request.answer(.failure(error)) }
        process.send(signal: SIGTERM)
        guard isFirst else { return }
        // One that is stopped or does not heed the signal would be left behind, and the threads that read from it.
        Task { [process] in
            if await process.end(within: Self.timeToEnd) == nil { process.killGroup() }
        }
    }
}
