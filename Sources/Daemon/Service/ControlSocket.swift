import Control
import Logging

/// Serves the commands of clients, and listens again where the socket file was removed, as it is with XDG_RUNTIME_DIR at the end of
/// a user's session.
actor ControlSocket {
    private var servers: [ControlServer] = []
    private var serving: [Task<Void, any Error>] = []
    private var watching: Task<Void, any Error>?
    private var complaint: String?
    private let listen: @Sendable () async throws -> ControlServer
    private let logger: Logger

    private static let pauseBetweenChecks = Duration.seconds(2)

    /// Serves at once.
    ///
    /// - Parameter listen: makes the socket file, and a server for it.
    init(
        _ first: ControlServer, logger: Logger, listenAgain listen: @escaping @Sendable () async throws -> ControlServer
    ) {
        self.listen = listen
        self.logger = logger
        servers = [first]
        serving = [Task { try await first.run() }]
    }

    /// Checks now and then whether the socket file is still there.
    func watch() {
        watching = Task {
            while true {
                try await Task.sleep(for: Self.pauseBetweenChecks)
                if servers.last?.isRemoved == true { await listenAgain() }
            }
        }
    }

    private func listenAgain() async {
        do {
            let server = try await listen()
            logger.notice("the socket was removed, and is there again")
            complaint = nil
            servers.append(server)
            serving.append(Task { try await server.run() })
        } catch {
            let text = "\(error)"
            if text != complaint { logger.warning("the socket was removed, and cannot be made again: \(text)") }
            complaint = text
        }
    }

    /// Stops listening for a successor, which gets the socket.
    func handOver() async {
        await stopWatching()
        for server in servers { await server.close(isWithdrawing: false) }
    }

    /// Removes the socket file: new clients find no daemon, connected clients stay.
    func withdraw() async {
        await stopWatching()
        for server in servers { server.withdraw() }
    }

    /// Returns when no socket file is made any more.
    private func stopWatching() async {
        watching?.cancel()
        _ = await watching?.result
    }

    /// Returns when the clients that wait for the end of the daemon have their answers, and all connections are closed.
    func close() async {
        for server in servers {
            await server.answerLastClients()
            await server.close()
        }
        for task in serving {
            task.cancel()
            _ = await task.result
        }
    }
}
