import Control
import Foundation
import Logging
import SystemPackage
import TestSupport
import Testing

/// A daemon and a command line of different packages, which have one protocol version.
@Suite struct OtherVersionTests {
    private struct Nothing: ControlService {
        func perform(
            _ command: ControlCommand, for peer: ControlPeer, progress: @escaping @Sendable (ControlEvent) -> Void,
            part: @escaping @Sendable (ControlResult) async throws -> Void
        ) async throws -> ControlResult { .done }
    }

    @Test(
        "SOCKET-6: a command that the daemon does not know is one of another version, and what is no command is wrong usage",
        arguments: [
            ("{\"version\":1,\"command\":{\"unheard\":{}}}", "version"),
            ("{\"version\":1,\"command\":{\"info\":{}}}", "version"), ("{\"version\":99}", "version"), ("{}", "usage"),
            ("nonsense", "usage"),
        ])
    func unknownCommand(_ message: String, _ code: String) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let socket = directory["control.sock"].string
        let server = try await ControlServer(
            at: socket, userIdentifier: getuid(), service: Nothing(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let serving = Task { try await server.run() }
        try await withCleanUp({ await server.close() }) {
            let answer = try await Command.python(
                """
                import socket, sys
                s = socket.socket(socket.AF_UNIX)
                s.connect(sys.argv[1])
                s.sendall(sys.argv[2].encode() + b'\\n')
                print(s.makefile().readline())
                """, socket, message)
            #expect(answer.output.contains("\"code\":\"\(code)\""), "\(answer.output)")
        }
        serving.cancel()
        _ = await serving.result
    }

    @Test("SOCKET-6: an answer that the command line cannot read is one of a daemon of another version")
    func unknownAnswer() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let socket = directory["control.sock"].string
        let daemon = try await BackgroundProgram(
            "python3", "-c",
            """
            import socket, sys
            s = socket.socket(socket.AF_UNIX)
            s.bind(sys.argv[1])
            s.listen()
            open(sys.argv[1] + '.ready', 'w')
            peer, _ = s.accept()
            peer.makefile().readline()
            peer.sendall(b'{"result":{"_0":{"unheard":{}}}}\\n')
            peer.recv(1)
            """, socket)
        defer { daemon.kill() }
        #expect(await eventually { FileManager.default.fileExists(atPath: socket + ".ready") })
        let error = await #expect(throws: ControlError.self) { try await ControlClient(socket: socket).perform(.ping) }
        #expect(error?.code == .version && error?.code.exitStatus == 69)
        #expect(error?.message.contains("'yonder daemon restart'") == true, "\(error?.message ?? "")")
    }
}
