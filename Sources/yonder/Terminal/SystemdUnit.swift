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
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        process.standardInput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        process.terminationHandler = { _ in end.finish() }
        guard (try? process.run()) != nil else { return nil }
        for await _ in ends {}
        guard process.terminationReason == .exit, process.terminationStatus == 0 else { return nil }
        return String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    }
}
