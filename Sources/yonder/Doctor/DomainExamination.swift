import Control
import Foundation

/// A mounted domain, and what it needs on this machine.
struct DomainExamination {
    let domain: DomainStatus
    var path = ProcessInfo.processInfo.environment["PATH"] ?? ""

    func findings() async -> [Finding] { [connection] + (await mount()) + programs + changes + warnings }

    private var connection: Finding {
        let reason = domain.reason.map { ": \($0)" } ?? ""
        switch domain.connection {
        case .online:
            return .ok(domain.name, "\(domain.source) answers")
        case .paused:
            return .warning(domain.name, "changes wait\(reason)", "yonder resume \(domain.name)")
        case .offline:
            return .error(
                domain.name, "the remote does not answer\(reason)",
                "Yonder tries again by itself; 'yonder signal \(domain.name) --wait' tries now")
        case .unauthenticated:
            // The program has the credentials, and the reason says what to do with it.
            if let reason = domain.reason, Self.needed[scheme] != nil { return .error(domain.name, reason) }
            return .error(
                domain.name, "the remote refuses the credentials\(reason)",
                "mount it again to give others: yonder mount \(domain.source) \(domain.mountpoint)")
        }
    }

    private func mount() async -> [Finding] {
        switch await MountProbe.ask(domain.mountpoint) {
        case .answers: []
        case .hangs:
            [
                .error(
                    domain.mountpoint, "the mount does not answer",
                    "look at 'yonder log'; 'yonder daemon restart' keeps what is open")
            ]
        case .fails, .isDead:
            [
                .error(
                    domain.mountpoint, "the mount cannot be read",
                    "yonder unmount \(domain.name) && yonder mount \(domain.name)")
            ]
        }
    }

    /// The programs of the user that serve a kind of source.
    private static let needed = ["sftp": "ssh", "rclone": "rclone"]

    private var scheme: String { String(domain.source.prefix { $0 != ":" }) }

    private var programs: [Finding] {
        guard let program = Self.needed[scheme], MachineExamination.program(program, in: path) == nil else { return [] }
        return [.error(domain.name, "'\(program)' is not in PATH, and \(scheme) needs it", "install \(program)")]
    }

    private var changes: [Finding] {
        guard domain.failed > 0 else { return [] }
        return [
            .error(
                domain.name,
                "\(Output.count(domain.failed, "change")) could not be sent, and \(domain.failed == 1 ? "waits" : "wait")",
                "'yonder pending \(domain.name)' says why; 'yonder retry \(domain.name)' tries again now")
        ]
    }

    private var warnings: [Finding] { domain.warnings.map { .warning(domain.name, $0) } }
}
