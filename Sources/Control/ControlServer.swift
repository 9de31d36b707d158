import Logging
import NIOCore
import NIOPosix
import Synchronization
import Syscalls
import SystemPackage

/// Executes the commands of clients.
package protocol ControlService: Sendable {
    /// - Parameters:
    ///   - progress: tells the client how far it is; never blocks.
    ///   - part: gives the client a part of a result before there is all of it; returns when there is room for the next. A
    ///     returned result may have any length.
    /// - Throws: ``ControlError``; anything else is told to the client as a failure. Cancelled when the client goes.
    func perform(
        _ command: ControlCommand, for peer: ControlPeer, progress: @escaping @Sendable (ControlEvent) -> Void,
        part: @escaping @Sendable (ControlResult) async throws -> Void
    ) async throws -> ControlResult
}

/// The server side of the control socket. Serves its own user and root, any number of clients at once.
package final class ControlServer: Sendable {
    private typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

    private let listener: NIOAsyncChannel<Connection, Never>
    private let service: any ControlService
    private let userIdentifier: UInt32
    private let logger: Logger
    private let place: SocketPlace
    /// The socket file of this server; nil if it was removed at once, and for a socket of systemd, which stays.
    private let socket: FileStatus?
    private let isWithdrawn = Mutex(false)
    /// The clients that wait for the end of the daemon.
    private let lastClients = Mutex<[ObjectIdentifier: LastClient]>([:])

    /// A client that waits for the end of the daemon.
    private final class LastClient: Sendable {
        /// Since when a message waits to be taken, or the result was sent.
        private let waitsSince = Mutex<ContinuousClock.Instant?>(nil)

        func noteWriting() { waitsSince.withLock { $0 = .now } }
        func noteWritten() { waitsSince.withLock { $0 = nil } }

        /// Whether it takes nothing any more, as a stopped process does.
        var isStalled: Bool {
            guard let since = waitsSince.withLock({ $0 }) else { return false }
            return ContinuousClock.now - since > ControlServer.patienceWithReader
        }
    }

    /// Listens on a socket that only this user can access.
    ///
    /// - Parameters:
    ///   - activation: the socket of a systemd unit, which goes on listening when this server has ended.
    ///   - inherited: the socket of a predecessor, with the clients that wait. The server owns it; it is closed if it
    ///     does not listen on the path.
    ///   - store: receives a new socket, to keep it for a successor.
    /// - Throws: `alreadyRunning` if a process listens there; `usage` for a path that is too long; an error for an
    ///   existing file that is not a dead socket of this user.
    package init(
        at path: String, userIdentifier: UInt32, service: any ControlService, logger: Logger,
        activation: SystemPackage.FileDescriptor? = nil, inherited: SystemPackage.FileDescriptor? = nil,
        store: (SystemPackage.FileDescriptor) -> Void = { _ in }
    ) async throws {
        let place = SocketPlace(path)
        let listening: SystemPackage.FileDescriptor
        if let activation {
            try? inherited?.close()
            guard activation.isListening(at: FilePath(path)) else {
                throw ControlError(
                    .failed, "the socket of the systemd unit is another; set YONDER_SOCKET in the service to its path",
                    path: path)
            }
            listening = activation
        } else if let inherited, inherited.isListening(at: FilePath(path)), try place.status()?.isSocket == true {
            listening = inherited
        } else {
            try? inherited?.close()
            try await place.prepare()
            do {
                listening = try SystemPackage.FileDescriptor.listening(at: FilePath(path))
            } catch {
                throw ControlError(.failed, "cannot listen: \(error)", path: path)
            }
            store(listening)
        }
        listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .bind(listening.rawValue) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(LineDecoder()))
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            }
        self.place = place
        socket = activation == nil ? try place.status() : nil
        self.userIdentifier = userIdentifier
        self.service = service
        self.logger = logger
    }

    /// Serves until ``close()``, or until the task is cancelled.
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

    /// Removes the socket file: new clients find no daemon, connected clients stay. Called once, because the path may
    /// belong to another daemon afterwards.
    package func withdraw() {
        let isFirst = isWithdrawn.withLock { !exchange(&$0, with: true) }
        if isFirst, let socket { try? place.remove(socket) }
    }

    /// Whether another program has removed the socket file: new clients find no daemon.
    package var isRemoved: Bool {
        guard socket != nil, !isWithdrawn.withLock({ $0 }) else { return false }
        do throws(ControlError) { return try place.status() == nil } catch { return false }
    }

    /// Waits until the clients that wait for the end of the daemon have got their answers and have closed their connections.
    /// Limited, because a command may not end. A client that reads nothing is not waited for.
    package func answerLastClients() async {
        let deadline = ContinuousClock.now + Self.patienceWithLastClients
        while lastClients.withLock({ $0.values.contains { !$0.isStalled } }), ContinuousClock.now < deadline {
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    private static let patienceWithLastClients = Duration.seconds(5)
    private static let patienceWithReader = Duration.seconds(2)

    /// Stops listening and cancels the commands of connected clients.
    ///
    /// - Parameter isWithdrawing: whether the socket file is removed; otherwise new clients wait for a successor.
    package func close(isWithdrawing: Bool = true) async {
        if isWithdrawing { withdraw() }
        try? await listener.channel.close()
    }

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
                let client = LastClient()
                defer { lastClients.withLock { $0[ObjectIdentifier(client)] = nil } }
                for try await line in lines where work == nil {
                    let command = Result { try Self.request(from: line).command }
                    if (try? command.get())?.endsWithDaemon == true {
                        lastClients.withLock { $0[ObjectIdentifier(client)] = client }
                    }
                    work = Task { try await self.answer(command, peer: peer, client, outbound) }
                }
                // The client has closed its end: it has the result, or was interrupted.
                work?.cancel()
                _ = try? await work?.value
            }
        } catch {
            logger.debug("a client went away: \(error)")
        }
    }

    private func answer(
        _ command: Result<ControlCommand, any Error>, peer: ControlPeer, _ client: LastClient,
        _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) async throws {
        // A slow client misses events, but never the result.
        let (events, sender) = AsyncStream.makeStream(of: ControlEvent.self, bufferingPolicy: .bufferingNewest(64))
        let work = Task { [service] in
            defer { sender.finish() }
            do {
                let result = try await service.perform(command.get(), for: peer) {
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
        // Writing to a client that has gone away throws, perhaps before the end of its connection is seen.
        defer { work.cancel() }
        try await withTaskCancellationHandler {
            for await event in events {
                client.noteWriting()
                try await outbound.write(Wire.encode(AnswerMessage.event(event)))
                client.noteWritten()
            }
            let answer = await work.value
            client.noteWriting()
            try await Self.write(answer, to: outbound)
            outbound.finish()
        } onCancel: {
            work.cancel()
        }
    }

    /// Writes the last message of a command, as several if it is too long for one.
    private static func write(
        _ answer: AnswerMessage, to outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) async throws {
        let line = try Wire.encode(answer)
        guard line.readableBytes > Wire.longestLine, case .result(let result) = answer else {
            return try await outbound.write(line)
        }
        var parts = result.parts
        let last = parts.removeLast()
        for part in parts { try await outbound.write(Wire.encode(AnswerMessage.part(part))) }
        try await outbound.write(Wire.encode(AnswerMessage.result(last)))
    }

    private static func request(from line: ByteBuffer) throws -> RequestMessage {
        struct Versioned: Decodable { var version: Int }
        let version: Int
        do {
            version = try Wire.decode(Versioned.self, from: line).version
        } catch let error as DecodingError {
            throw ControlError(.usage, "not a command: \(error)")
        }
        guard version == Wire.version else {
            throw ControlError(
                .version, "the client speaks version \(version) and the daemon \(Wire.version): restart the daemon")
        }
        do {
            return try Wire.decode(RequestMessage.self, from: line)
        } catch is DecodingError {
            throw Wire.otherVersion("does not know this command")
        }
    }
}
