import FileProvider
import Foundation
import Logging
import Synchronization

/// The calls of one run of a program.
final class ProgramSession: Sendable {
    private struct PendingCall {
        let continuation: CheckedContinuation<[UInt8], any Error>
        /// The call of the system that waits for this one. The reader's thread has none of its own.
        let context: CallContext?
        let onSent: @Sendable (Int64) -> Void
        var deadline: ContinuousClock.Instant
    }

    private struct State {
        var lastID = 0
        var pending: [Int: PendingCall] = [:]
        /// Calls that were cancelled before they were sent.
        var cancelled: Set<Int> = []
        /// Why there will be no more responses.
        var end: FileProviderError?
        var process: ProgramProcess?
        var isInUse = false
    }

    private let state = Mutex(State())
    private let program: String
    /// A call without a response or progress for this time has hung.
    private let inactivityLimit: Duration
    private let onNotice: @Sendable (ProgramNotice) -> Void

    private init(
        of program: String, inactivityLimit: Duration, onNotice: @escaping @Sendable (ProgramNotice) -> Void
    ) {
        self.program = program
        self.inactivityLimit = inactivityLimit
        self.onNotice = onNotice
    }

    /// Starts a program.
    ///
    /// - Parameter onNotice: called with what the program says on its own.
    /// - Throws: `serverUnreachable` for a program that cannot be started.
    static func start(
        _ path: String, environment: [String: String], inactivityLimit: Duration, logger: Logger,
        onNotice: @escaping @Sendable (ProgramNotice) -> Void
    ) async throws -> ProgramSession {
        let session = ProgramSession(
            of: URL(fileURLWithPath: path).lastPathComponent, inactivityLimit: inactivityLimit, onNotice: onNotice)
        do {
            let process = try await ProgramProcess.start(path, environment: environment, logger: logger) {
                [weak session] line in
                session?.take(line)
            } onEnd: { [weak session] end in
                session?.ended(end)
            }
            session.state.withLock { $0.process = process }
            // It may have ended while it had no process that could be ended.
            if session.failure != nil { process.kill() }
        } catch {
            let interpreter = ScriptInterpreter.missing(of: path, in: environment)
            let reason = interpreter.map { "its interpreter '\($0)' is not installed" } ?? "\(error)"
            throw FileProviderError(.serverUnreachable, "'\(path)' cannot be started: \(reason)")
        }
        Task { [weak session] in
            while let session, session.failure == nil {
                session.endIfHung()
                try? await Task.sleep(for: min(inactivityLimit / 4, .seconds(1)))
            }
        }
        return session
    }

    deinit { state.withLock { $0.process }?.kill() }

    /// Why the program ended; nil while it runs.
    var failure: FileProviderError? { state.withLock { $0.end } }

    /// Calls a method and waits for its response.
    ///
    /// - Parameter onSent: called with the bytes that the program says it has sent of the call's file, of which there may be fewer. Not
    ///   called after the response.
    /// - Throws: ``ProgramFailure`` for an error response; `providerDomainTemporarilyUnavailable` if the program ended before it
    ///   answered; `malformedResponse`; `timedOut`; `userCancelled`.
    func call<Value: Decodable & Sendable>(
        _ method: String, _ parameters: some Encodable & Sendable, returning: Value.Type = Value.self,
        onSent: @escaping @Sendable (Int64) -> Void = { _ in }
    ) async throws -> Value {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        defer { state.withLock { _ = $0.cancelled.remove(id) } }
        let line = try JSONEncoder().encode(ProgramRequest(id: id, method: method, params: parameters))
        let answer = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (failure, process) = state.withLock { state -> (FileProviderError?, ProgramProcess?) in
                    if state.cancelled.remove(id) != nil { return (FileProviderError(.userCancelled), nil) }
                    if let end = state.end { return (end, nil) }
                    state.pending[id] = PendingCall(
                        continuation: continuation, context: CallContext.current, onSent: onSent,
                        deadline: .now + inactivityLimit)
                    return (nil, state.process)
                }
                if let failure { return continuation.resume(throwing: failure) }
                process?.send(line)
            }
        } onCancel: {
            cancel(id)
        }
        do {
            return try JSONDecoder().decode(ProgramResponse<Value>.self, from: Data(answer)).result
        } catch {
            throw garbage("sent a response to '\(method)' that is not as the protocol has it", error)
        }
    }

    /// From now on the end of the program counts as a change on the remote: no program reports changes until the next call
    /// starts it again.
    func beginUse() { state.withLock { $0.isInUse = true } }

    /// Ends the program: its standard input is closed, and after a time it is killed.
    func close() async {
        let process = state.withLock { state in
            state.isInUse = false
            return state.process
        }
        guard let process else { return }
        process.close()
        for _ in 0..<40 where process.isRunning { try? await Task.sleep(for: .milliseconds(50)) }
        process.kill()
    }

    private func cancel(_ id: Int) {
        let (call, process) = state.withLock { state -> (PendingCall?, ProgramProcess?) in
            guard let call = state.pending.removeValue(forKey: id) else {
                state.cancelled.insert(id)
                return (nil, nil)
            }
            return (call, state.process)
        }
        guard let call else { return }
        let notification = ProgramRequest(id: nil, method: "cancel", params: CancelParameters(id: id))
        if let line = try? JSONEncoder().encode(notification) { process?.send(line) }
        call.continuation.resume(throwing: FileProviderError(.userCancelled))
    }

    private func take(_ line: [UInt8]) {
        let header: ProgramHeader
        do {
            header = try JSONDecoder().decode(ProgramHeader.self, from: Data(line))
        } catch {
            let start = String(decoding: line.prefix(60), as: UTF8.self)
            return end(garbage("sent a line that is not JSON-RPC 2.0 ('\(start)')", error))
        }
        switch (header.method, header.id) {
        case ("changed", nil): onNotice(.changed)
        case ("resolved", nil):
            if let code = header.params?.code.flatMap(FileProviderError.Code.init(rawValue:)) {
                onNotice(.resolved(code))
            }
        case ("progress", nil):
            guard let id = header.params?.id else { return }
            let call = state.withLock { state -> PendingCall? in
                state.pending[id]?.deadline = .now + inactivityLimit
                return state.pending[id]
            }
            call?.context?.noteAnswer()
            if let sent = header.params?.sent {
                call?.onSent(Int64(min(max(0, sent), Double(FileProviderItem.maximumDocumentSize))))
            }
        case (_?, nil): break
        case (nil, let id?):
            let (call, isKnown) = state.withLock { state in
                (state.pending.removeValue(forKey: id), (1...max(1, state.lastID)).contains(id))
            }
            guard isKnown else { return end(garbage("answered call \(id), which was not made")) }
            call?.context?.noteAnswer()
            // A response to a call that was cancelled comes too late.
            if let failure = header.error {
                call?.continuation.resume(throwing: failure)
            } else {
                call?.continuation.resume(returning: line)
            }
        default: end(garbage("sent a message that is neither a response nor a notification"))
        }
    }

    private func endIfHung() {
        let isHung = state.withLock { state in state.pending.values.contains { $0.deadline < .now } }
        if isHung {
            end(FileProviderError(.timedOut, "'\(program)' makes no progress, and was ended"))
        }
    }

    private func ended(_ how: ProgramProcess.End) {
        switch how {
        case .lineTooLong:
            end(garbage("sent a line of more than \(ProgramProtocol.longestLine >> 20) MB"))
        case .exited(let status):
            end(FileProviderError(.providerDomainTemporarilyUnavailable, "'\(program)' has ended (\(status))"))
        }
        if state.withLock({ $0.isInUse }) { onNotice(.changed) }
    }

    private func garbage(_ what: String, _ cause: (any Error)? = nil) -> FileProviderError {
        let words = (cause as? DecodingError).map { ": \($0.words)" } ?? ""
        return FileProviderError(
            .malformedResponse, "'\(program)' \(what)\(words)", underlyingErrors: cause.map { [$0] } ?? [])
    }

    /// Ends all calls with an error, and the program. The first reason counts.
    private func end(_ error: FileProviderError) {
        let (calls, process) = state.withLock { state -> ([PendingCall], ProgramProcess?) in
            guard state.end == nil else { return ([], nil) }
            state.end = error
            return (Array(exchange(&state.pending, with: [:]).values), state.process)
        }
        for call in calls { call.continuation.resume(throwing: error) }
        process?.kill()
    }
}
