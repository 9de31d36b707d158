import Dispatch
import FileProvider
import Foundation
import Synchronization
import SystemPackage

/// A connection to an SFTP server through a child process. Any number of requests may be in flight.
///
/// `@unchecked`: Foundation's `Process` and `Pipe` are not Sendable; they are only read after `init`.
final class SFTPSession: @unchecked Sendable {
    private struct State {
        var lastRequest: UInt32 = 0
        var waiting: [UInt32: CheckedContinuation<SFTPReply, any Error>] = [:]
        var end: FileProviderError?
        var isGreeted = false
        var errors: [UInt8] = []
    }

    /// The longest message that a server may send.
    static let longestMessage = 1 << 20

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private let errors = Pipe()
    private let errorsEnded = DispatchGroup()
    private let writing = DispatchQueue(label: "yonder.sftp.write")
    private let state = Mutex(State())
    private let host: String
    private let announced = Mutex<Set<String>>([])

    /// Starts the program. Blocks.
    private init(_ command: [String], environment: [String: String], host: String) throws {
        self.host = host
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        // The threads that run tasks block all signals, which the program would inherit.
        process.arguments = ["--default-signal"] + command
        process.environment = environment
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        (process.standardInput, process.standardOutput, process.standardError) = (input, output, errors)
        do {
            try process.run()
        } catch {
            throw FileProviderError(.serverUnreachable, "'\(command[0])' cannot be started")
        }
        errorsEnded.enter()
        Thread.detachNewThread { [self] in
            collectErrors()
            errorsEnded.leave()
        }
        Thread.detachNewThread { [self] in receive() }
    }

    /// Starts the program, and agrees on the version.
    static func open(_ command: [String], environment: [String: String], host: String) async throws -> SFTPSession {
        let session = try await BlockingWork.run {
            try SFTPSession(command, environment: environment, host: host)
        }
        do {
            let greeting = try await session.response(to: 0) {
                var writer = SFTPWriter()
                writer.append(SFTPMessage.initialize)
                writer.append(UInt32(3))
                session.send(writer.bytes)
            }
            let extensions = try greeting.extensions()
            session.announced.withLock { $0 = extensions }
            session.state.withLock { $0.isGreeted = true }
            return session
        } catch {
            session.close()
            throw error
        }
    }

    var isOpen: Bool { state.withLock { $0.end == nil } }

    func has(_ name: String) -> Bool { announced.withLock { $0.contains(name) } }

    func close() { end(FileProviderError(.serverUnreachable, "the connection was closed")) }

    /// Sends a request, and waits for the response.
    func request(_ type: UInt8, _ build: (inout SFTPWriter) -> Void) async throws -> SFTPReply {
        let identifier = state.withLock { state in
            state.lastRequest = state.lastRequest == .max ? 1 : state.lastRequest + 1
            return state.lastRequest
        }
        var writer = SFTPWriter()
        writer.append(type)
        writer.append(identifier)
        build(&writer)
        let bytes = writer.bytes
        return try await response(to: identifier) { send(bytes) }
    }

    /// Closes a handle without waiting for the response.
    func closeHandle(_ handle: [UInt8]) {
        Task { _ = try? await request(SFTPMessage.close) { $0.append(handle) } }
    }

    private func response(to identifier: UInt32, _ send: () -> Void) async throws -> SFTPReply {
        try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await withCheckedThrowingContinuation { continuation in
                let end = state.withLock { state in
                    if state.end == nil { state.waiting[identifier] = continuation }
                    return state.end
                }
                if let end { return continuation.resume(throwing: end) }
                send()
                if Task.isCancelled { cancel(identifier) }
            }
        } onCancel: {
            cancel(identifier)
        }
    }

    private func cancel(_ identifier: UInt32) {
        state.withLock { $0.waiting.removeValue(forKey: identifier) }?.resume(throwing: CancellationError())
    }

    private func send(_ message: [UInt8]) {
        var writer = SFTPWriter()
        writer.append(message)
        let bytes = writer.bytes
        writing.async { [self] in
            do {
                try FileDescriptor(rawValue: input.fileHandleForWriting.fileDescriptor).writeAll(bytes)
            } catch {
                // The end of the output says why.
                process.terminate()
            }
        }
    }

    // MARK: - Receiving, on threads of their own

    private static func read(_ pipe: Pipe) -> [UInt8] {
        let descriptor = FileDescriptor(rawValue: pipe.fileHandleForReading.fileDescriptor)
        let bytes = try? [UInt8](unsafeUninitializedCapacity: 1 << 18) { buffer, filled in
            filled = try descriptor.read(into: .init(buffer))
        }
        return bytes ?? []
    }

    private func collectErrors() {
        while case let bytes = Self.read(errors), !bytes.isEmpty {
            state.withLock { $0.errors = ($0.errors + bytes).suffix(4096) }
        }
    }

    private func receive() {
        var buffer: [UInt8] = []
        var isSFTP = true
        while isSFTP, case let bytes = Self.read(output), !bytes.isEmpty {
            buffer += bytes
            isSFTP = takeMessages(from: &buffer)
        }
        if !isSFTP {
            return end(
                FileProviderError(
                    .malformedResponse,
                    "the response of '\(host)' is not SFTP: a text that its shell prints at login may be in front of it"
                ))
        }
        // Another process that the program has started may keep its standard error open.
        _ = errorsEnded.wait(timeout: .now() + 1)
        let (said, isGreeted) = state.withLock { (String(decoding: $0.errors, as: UTF8.self), $0.isGreeted) }
        let error = SSHFailure.error(said, host: host)
        end(
            isGreeted && error.code == .notAuthenticated
                ? FileProviderError(.serverUnreachable, "the connection to '\(host)' broke") : error)
    }

    /// - Returns: false for a message that cannot be one.
    private func takeMessages(from buffer: inout [UInt8]) -> Bool {
        var start = 0
        defer { buffer.removeFirst(start) }
        while buffer.count - start >= 4 {
            let length = buffer[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            guard length >= 5, length <= Self.longestMessage else { return false }
            guard buffer.count - start - 4 >= length else { return true }
            take(Array(buffer[start + 4..<start + 4 + length]))
            start += 4 + length
        }
        return true
    }

    private func take(_ message: [UInt8]) {
        let isVersion = message[0] == SFTPMessage.version
        let identifier = isVersion ? 0 : message[1..<5].reduce(0) { $0 << 8 | UInt32($1) }
        let reply = SFTPReply(type: message[0], body: Array(message.dropFirst(isVersion ? 1 : 5)))
        if let waiting = state.withLock({ $0.waiting.removeValue(forKey: identifier) }) {
            waiting.resume(returning: reply)
        } else if let handle = try? reply.handle() {
            // The request was cancelled.
            closeHandle(handle)
        }
    }

    private func end(_ error: FileProviderError) {
        let waiting = state.withLock { state in
            state.end = state.end ?? error
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume(throwing: error) }
        if process.isRunning { process.terminate() }
    }
}
