import Control
import FileNames
import Foundation

/// A mounted domain, and what it needs on this machine.
struct DomainExamination {
    /// What the remote of a domain that is online has answered now.
    enum RemoteAnswer {
        case answers
        /// There is no answer in time.
        case isSilent(Duration)
        /// Not that of its root.
        case fails(String)
        /// It was not asked.
        case isUnknown
    }

    let domain: DomainStatus
    var remote = RemoteAnswer.isUnknown
    var path = ProcessInfo.processInfo.environment["PATH"] ?? ""

    func findings() async -> [Finding] { [connection] + (await mount()) + programs + changes + warnings }

    /// The name of the domain in a command.
    private var word: String { ShellWord.escaped(domain.name) }

    private var connection: Finding {
        let reason = domain.reason.map { ": \($0)" } ?? ""
        switch domain.connection {
        case .online:
            return online
        case .paused:
            return .warning(domain.name, "changes wait\(reason)", "yonder resume \(word)")
        case .offline:
            return isAway(reason)
        case .unauthenticated:
            // The program has the credentials, and the reason says what to do with it.
            if let reason = domain.reason, Self.needed[scheme] != nil { return .error(domain.name, reason) }
            return .error(
                domain.name, "the remote refuses the credentials\(reason)",
                "mount it again to give others: yonder mount \(ShellWord.escaped(domain.source)) "
                    + ShellWord.escaped(domain.mountpoint))
        }
    }

    /// The state of the domain is that of the last call, which may have been long ago.
    private var online: Finding {
        switch remote {
        case .answers: .ok(domain.name, "\(domain.source) answers")
        case .isSilent(let time):
            .warning(
                domain.name,
                "\(domain.source) was online when it was last asked, and has not answered for \(time.components.seconds) seconds",
                "'yonder signal \(word) --wait' waits for its answer")
        case .fails(let reason): isAway(": \(reason)")
        case .isUnknown: .ok(domain.name, "\(domain.source) was online when it was last asked")
        }
    }

    private func isAway(_ reason: String) -> Finding {
        .error(
            domain.name, "the remote does not answer\(reason)",
            "Yonder tries again by itself; 'yonder signal \(word) --wait' tries now")
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
                    "yonder unmount \(word) && yonder mount \(word)")
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
                "'yonder pending \(word)' says why; 'yonder retry \(word)' tries again now")
        ]
    }

    private var warnings: [Finding] { domain.warnings.map { .warning(domain.name, $0) } }
}
