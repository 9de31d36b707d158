import Foundation
import Logging
import NIOCore
import NIOPosix
import Synchronization
import Syscalls
import SystemPackage

/// Does what clients ask.
package protocol ControlService: Sendable {
    /// - Parameters:
    ///   - progress: tells the client how far it is; never blocks.
    ///   - part: gives the client a part of a result that may be too long for one message; returns when there is room for
    ///     the next.
    /// - Throws: ``ControlError``; anything else is told to the client as a failure. Cancelled when the client goes.
    func perform(
        _ command: ControlCommand, for peer: ControlPeer, progress: @escaping @Sendable (ControlEvent) -> Void,
        part: @escaping @Sendable (ControlResult) async throws -> Void
    ) async throws -> ControlResult
}

/// The daemon's end of the socket: serves its own user and root, any number at once.
package final class ControlServer: Sendable {
    private typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

    private let listener: NIOAsyncChannel<Connection, Never>
    private let service: any ControlService
    private let userIdentifier: UInt32
    private let logger: Logger
    private let place: SocketPlace
    /// The socket that this server has made; nil when it was gone at once.
    private let socket: FileStatus?
    private let isWithdrawn = Mutex(false)

    /// Listens on a socket that only this user can reach.
    ///
    /// - Throws: `alreadyRunning` when somebody answers there; `usage` for a path that is too long; what lies there and is
    ///   no dead socket of this user's.
    package init(
        at path: String, userIdentifier: UInt32, service: any ControlService, logger: Logger
    ) async throws {
        let place = SocketPlace(path)
        try await place.prepare()
        listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .bind(unixDomainSocketPath: path) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(LineDecoder()))
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            }
        try FilePath(path).setPermissions(0o600)
        self.place = place
        socket = try place.status()
        self.userIdentifier = userIdentifier
        self.service = service
        self.logger = logger
    }

    /// Serves until the task is cancelled or ``close()``.
    package func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            try await listener.executeThenClose { connections in
                for try await connection in connections {
                    group.addTask { await self.serve(connection) }
                }
            }
            group.cancelAll()
        }
    }

    /// Takes the socket out of the tree: new clients find no daemon, those that are served stay. Once: afterwards the
    /// path is another daemon's.
    package func withdraw() {
        let isFirst = isWithdrawn.withLock { isWithdrawn in
            defer { isWithdrawn = true }
            return !isWithdrawn
        }
        if isFirst, let socket { try? place.remove(socket) }
    }

    /// Takes no more clients; those that are served are cancelled.
    package func close() async {
        withdraw()
        try? await listener.channel.close()
    }

    // MARK: - Private

    private func serve(_ connection: Connection) async {
        do {
            let peer = try await ControlPeer(of: connection.channel)
            try await connection.executeThenClose { lines, outbound in
                guard peer.userIdentifier == userIdentifier || peer.userIdentifier == 0 else {
                    let refusal = ControlError(.notPermitted, "this daemon belongs to another user")
                    try await outbound.write(Wire.encode(AnswerMessage.error(refusal)))
                    return
                }
                var work: Task<Void, any Error>?
                for try await line in lines where work == nil {
                    work = Task { try await self.answer(line, peer: peer, outbound) }
                }
                // The client has closed its end: it has its answer, or does not want it any more.
                work?.cancel()
                _ = try? await work?.value
            }
        } catch {
            logger.debug("a client went away: \(error)")
        }
    }

    /// Performs one command and writes all its answers.
    private func answer(
        _ line: ByteBuffer, peer: ControlPeer, _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) async throws {
        // A client that reads slowly misses events, never the result.
        let (events, sender) = AsyncStream.makeStream(of: ControlEvent.self, bufferingPolicy: .bufferingNewest(64))
        let work = Task { [service] in
            defer { sender.finish() }
            do {
                let request = try Self.request(from: line)
                let result = try await service.perform(request.command, for: peer) {
                    sender.yield($0)
                } part: { part in
                    try await outbound.write(Wire.encode(AnswerMessage.part(part)))
                }
                return AnswerMessage.result(result)
            } catch let error as ControlError {
                return AnswerMessage.error(error)
            } catch is CancellationError {
                return AnswerMessage.error(ControlError(.failed, "cancelled"))
            } catch {
                return AnswerMessage.error(ControlError(.failed, "\(error)"))
            }
        }
        try await withTaskCancellationHandler {
            for await event in events { try await outbound.write(Wire.encode(AnswerMessage.event(event))) }
            try await outbound.write(Wire.encode(await work.value))
            outbound.finish()
        } onCancel: {
            work.cancel()
        }
    }

    private static func request(from line: ByteBuffer) throws -> RequestMessage {
        struct Versioned: Decodable { var version: Int }
        do {
            let version = try Wire.decode(Versioned.self, from: line).version
            guard version == Wire.version else {
                throw ControlError(
                    .version, "the client speaks version \(version) and the daemon \(Wire.version): restart the daemon")
            }
            return try Wire.decode(RequestMessage.self, from: line)
        } catch let error as DecodingError {
            throw ControlError(.usage, "not a command that this daemon knows: \(error)")
        }
    }
}
