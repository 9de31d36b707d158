import Foundation
import SystemPackage
import TestSupport

/// A line to a server on loopback that a test makes as bad as lines are (Programs/remotes/relay.py).
struct Relay: Sendable {
    /// Where to connect to in the server's place.
    let port: Int
    /// What takes the commands.
    let control: Int
    private let scratch: TemporaryDirectory
    private let program: BackgroundProgram

    /// - Parameter milliseconds: how long a round trip takes.
    init(to server: Int, milliseconds: Int = 0) async throws {
        scratch = try TemporaryDirectory()
        let text: String
        (program, text) = try await BackgroundProgram.start(
            ["python3", Self.programs + "/relay.py", String(server), scratch.path.string, String(milliseconds)],
            until: scratch["relay"])
        let ports = text.split(separator: " ").compactMap { Int($0) }
        guard ports.count == 2 else { throw TestFailure("the relay does not say where it listens") }
        (port, control) = (ports[0], ports[1])
    }

    func stop() {
        program.kill()
        scratch.remove()
    }

    /// Changes the line, or asks about it; see the program.
    @discardableResult
    func tell(_ command: String) async throws -> String {
        let outcome = try await Command.run(
            "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/\(control); echo \"$0\" >&3; read -r line <&3; echo \"$line\"",
            command)
        guard outcome.status == 0, !outcome.line.hasPrefix("unknown") else {
            throw TestFailure("'\(command)': \(outcome.line)\(outcome.errors)")
        }
        return outcome.line
    }

    /// How many bytes have gone to the server.
    func bytesSent() async throws -> Int {
        Int(try await tell("bytes").split(separator: " ").first ?? "") ?? 0
    }

    static let programs = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Programs/remotes").path
}

/// Whether tests may take minutes.
let hasTimeForLongTests = ProcessInfo.processInfo.environment["YONDER_LONG_TESTS"] == "1"
