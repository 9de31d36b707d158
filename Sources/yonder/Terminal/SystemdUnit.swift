import Control
import Foundation
import Syscalls

/// The unit of the daemon, where a package has installed one and systemd runs: it starts the daemon outside of the session or the
/// mount unit that needs it.
struct SystemdUnit {
    private let command: [String]

    /// - Parameters:
    ///   - places: those of this process. A unit has the usual ones.
    ///   - keeper: the program that the unit must start; that of another installation is not ours.
    /// - Returns: nil where there is no such unit.
    init?(for places: Places, keeper: String, environment: [String: String]) async {
        let isRoot = Machine.userIdentifier == 0
        let usual = environment.filter { ["HOME", "XDG_RUNTIME_DIR"].contains($0.key) }
        guard places == Places(environment: usual), FileManager.default.fileExists(atPath: "/run/systemd/system") else {
            return nil
        }
        command = isRoot ? ["systemctl"] : ["systemctl", "--user"]
        let unit = isRoot ? "yonderd@root.service" : "yonderd.service"
        let start = await Self.output(of: command + ["show", "--property=ExecStart", unit])
        guard start?.contains(" \(keeper) ") == true else { return nil }
        // Units wait for the local file systems, of which a line of fstab may be one.
        if isRoot, await Self.output(of: command + ["is-active", "sysinit.target"]) == nil { return nil }
        name = unit
    }

    let name: String

    /// Asks for the start. The caller waits for the daemon.
    func start() async { _ = await Self.output(of: command + ["--quiet", "--no-block", "start", name]) }

    /// What a program prints; nil if it fails.
    private static func output(of command: [String]) async -> String? {
        guard let program = command.first else { return nil }
        let launch = ChildProcess.Launch(
            program, Array(command.dropFirst()), environment: ProcessInfo.processInfo.environment, in: nil)
        guard let (end, output) = try? await ChildProcess.run(launch, reading: .output, within: .seconds(120)),
            end == .exited(0)
        else { return nil }
        return String(decoding: output, as: UTF8.self)
    }
}
