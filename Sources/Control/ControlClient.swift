import NIOCore
import NIOPosix
import Syscalls
import SystemPackage

package struct ControlClient: Sendable {
    package typealias PartHandler = @Sendable (ControlResult) async throws -> Void

    private let path: String

    /// - Parameter path: the socket of the user's own daemon.
    package init(socket path: String) {
        self.path = path
    }

    /// Sends a command and waits for its result. Cancelling the task cancels the command.
    ///
    /// - Parameters:
    ///   - onEvent: receives progress, in order.
    ///   - onPart: receives parts of a long result, in order, before the last part is returned. Nil: the whole result is returned.
    /// - Throws: ``ControlError``: `unavailable` if no daemon listens; `interrupted` if the daemon ended before it answered; `notPermitted`
    ///   if the listener is another user, in which case nothing is sent, or if this user may not connect; `version` if the daemon does
    ///   not know the command, or answers what this program cannot read.
    package func perform(
        _ command: ControlCommand, onEvent: @escaping @Sendable (ControlEvent) -> Void = { _ in },
        onPart: PartHandler? = nil
    ) async throws -> ControlResult {
        let connection: NIOAsyncChannel<ByteBuffer, ByteBuffer>
        do {
            connection = try await Self.connect(to: path)
        } catch {
            throw Self.refused(with: Self.errno(of: error), at: path)
        }
        let request = try Wire.encode(RequestMessage(version: Wire.version, command: command))
        do {
            return try await connection.executeThenClose { lines, outbound in
                // Another user may have created the socket, and commands can contain passwords.
                let peer = try await ControlPeer(of: connection.channel)
                guard peer.userIdentifier == Machine.userIdentifier else {
                    throw ControlError(
                        .notPermitted,
                        "the program that listens there runs as user \(peer.userIdentifier), not as you: nothing was sent to it",
                        path: path)
                }
                try await outbound.write(request)
                var parts: [ControlResult] = []
                for try await line in lines {
                    switch try Wire.decode(AnswerMessage.self, from: line) {
                    case .event(let event): onEvent(event)
                    case .part(let part):
                        if let onPart { try await onPart(part) } else { parts.append(part) }
                    case .result(let result): return result.joined(after: parts)
                    case .error(let error): throw error
                    }
                }
                try Task.checkCancellation()
                throw ControlError(.interrupted, "the daemon ended before it answered")
            }
        } catch let error where error is IOError || error is ChannelError || error is NIOAsyncWriterError {
            // The daemon was killed.
            throw ControlError(.interrupted, "the daemon ended before it answered")
        } catch is DecodingError {
            throw Wire.otherVersion("its answer cannot be read")
        }
    }

    package static func answers(at path: String) async -> Bool { await refusal(at: path) == nil }

    /// The error of a connection attempt; nil if a process listens.
    static func refusal(at path: String) async -> Errno? {
        let connection: NIOAsyncChannel<ByteBuffer, ByteBuffer>
        do {
            connection = try await connect(to: path)
        } catch {
            return errno(of: error)
        }
        try? await connection.channel.close()
        // NIO requires that the channel is run to its end.
        try? await connection.executeThenClose { _, _ in }
        return nil
    }

    private static func errno(of error: any Error) -> Errno {
        (error as? IOError).map { Errno(rawValue: $0.errnoCode) } ?? .ioError
    }

    /// The error of a command where no daemon listens.
    package static func noDaemon(at path: String) -> ControlError {
        ControlError(.unavailable, "no daemon answers on '\(path)'; 'yonder mount' starts one")
    }

    /// The error of a command that has not reached a daemon.
    private static func refused(with error: Errno, at path: String) -> ControlError {
        guard error == .permissionDenied || error == .notPermitted else {
            return noDaemon(at: path)
        }
        // A daemon may listen there.
        return ControlError(.notPermitted, "the control socket cannot be connected to: \(error)", path: path)
    }

    private static func connect(to path: String) async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
        guard path.utf8.count <= Places.longestSocketPath else { throw ControlError(.usage, "too long", path: path) }
        return try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(unixDomainSocketPath: path) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(LineDecoder()))
                    return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                }
            }
    }
}
