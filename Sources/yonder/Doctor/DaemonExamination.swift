import Control
import FileNames
import Foundation
import Syscalls

/// The daemon, its domains, and mounts that it has left behind.
struct DaemonExamination {
    let places: Places
    var mounts: [MountTable.Mount] = (try? MountTable().mounts) ?? []

    func findings() async -> [Finding] {
        if let loop = CrashLoop(in: places) {
            return [.error("daemon", loop.description)]
        }
        let client = ControlClient(socket: places.socket)
        do {
            guard let answer = try await Self.answer(of: client, to: .status(nil), within: Self.patience) else {
                return [.error("daemon", "it does not answer", "look at 'yonder log'")]
            }
            guard case .status(let report) = answer else { return [] }
            let mounted = Set(report.domains.map(\.mountpoint))
            var findings = daemon(report) + (await dead(except: mounted))
            if case .domains(let known) = try await client.perform(.domains) {
                findings += known.filter { !$0.isMounted && $0.isToBeMounted == true }.map {
                    .warning(
                        $0.name, "it is not mounted, though it is to be",
                        "yonder mount \(ShellWord.escaped($0.name)), or yonder unmount \(ShellWord.escaped($0.name))")
                }
                findings += known.filter { $0.unsent ?? 0 > 0 }.map {
                    .warning(
                        $0.name, "it is not mounted, and has changes that are not sent",
                        "yonder mount \(ShellWord.escaped($0.name))")
                }
            }
            for domain in report.domains { findings += await Self.examination(of: domain, asking: client).findings() }
            return findings
        } catch let error as ControlError where error.code == .unavailable {
            let dead = await dead(except: [])
            if let other = OtherDaemon(on: places) {
                return [.error(places.stateDirectory, other.text, OtherDaemon.advice)] + dead
            }
            return [
                dead.isEmpty
                    ? .warning("daemon", "none runs, and nothing is mounted", "'yonder mount' starts it")
                    : .warning(
                        "daemon", "none runs", "'yonder mount --all' starts it, and mounts again what was mounted")
            ] + dead
        } catch let error as ControlError where error.code == .version {
            return [.error("daemon", error.message, "yonder daemon restart")]
        } catch {
            return [.error("daemon", "\(error)")]
        }
    }

    /// - Returns: nil when there is none in time.
    private static func answer(
        of client: ControlClient, to command: ControlCommand, within patience: Duration
    ) async throws -> ControlResult? {
        try await withThrowingTaskGroup(of: ControlResult?.self) { group in
            group.addTask { try await client.perform(command) }
            group.addTask {
                try await Task.sleep(for: patience)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    private static let patience = Duration.seconds(20)
    /// A remote that is there answers for its root before.
    private static let patienceWithRemote = Duration.seconds(5)

    /// Has the daemon ask the remote of a domain that is online.
    private static func examination(of domain: DomainStatus, asking client: ControlClient) async -> DomainExamination {
        guard domain.connection == .online else { return DomainExamination(domain: domain) }
        let reference = DomainReference(text: domain.name, path: "/")
        do {
            let answer = try await answer(of: client, to: .probe(reference), within: patienceWithRemote)
            return DomainExamination(domain: domain, remote: answer == nil ? .isSilent(patienceWithRemote) : .answers)
        } catch let error as ControlError where error.code == .failed {
            // Its state tells more than the failure: whether the credentials are refused, or the user has paused it meanwhile.
            guard case .status(let report)? = try? await answer(of: client, to: .status(reference), within: patience),
                let now = report.domains.first
            else { return DomainExamination(domain: domain, remote: .fails(error.message)) }
            return DomainExamination(domain: now, remote: .fails(error.message))
        } catch {
            // The daemon is older than this program, or has unmounted the domain.
            return DomainExamination(domain: domain)
        }
    }

    private func daemon(_ report: StatusReport) -> [Finding] {
        let daemon = report.daemon
        var findings: [Finding] = [.ok("daemon", "process \(daemon.worker), since \(daemon.startedAt)")]
        if report.version != Version.current {
            findings.append(
                .warning(
                    "daemon", "it is version \(report.version), and this is \(Version.current)", "yonder daemon restart"
                ))
        }
        if let other = daemon.otherState(than: places) { findings.append(.warning("daemon", other)) }
        let warnings = daemon.warnings ?? []
        if warnings.contains(DaemonStatus.keeperHasEnded) {
            findings.append(.warning("daemon", DaemonStatus.keeperHasEnded))
        } else if daemon.keeper == nil {
            findings.append(
                .warning(
                    "daemon", "no process would start it again after a crash",
                    "if there is no yonder-keeper beside yonderd, install it; then: yonder shutdown; yonder mount --all"
                ))
        }
        let reports = (try? FileManager.default.contentsOfDirectory(atPath: places.crashes)) ?? []
        if !reports.isEmpty {
            findings.append(
                .warning(
                    "daemon", "it has crashed: \(Output.count(reports.count, "report")) in '\(places.crashes)'",
                    "please report it, with the newest file"))
        }
        return findings
            + warnings.filter { $0 != DaemonStatus.keeperHasEnded }.map { Finding.warning("configuration", $0) }
    }

    /// Mounts of ours that no daemon serves.
    private func dead(except mounted: Set<String>) async -> [Finding] {
        let others = mounts.filter { $0.type == "fuse.yonder" }.map { $0.filePath.fileNameText }
            .filter { !mounted.contains($0) }
        var findings: [Finding] = []
        for place in others where await MountProbe.ask(place) == .isDead {
            findings.append(
                .error(
                    place, "a mount that no daemon serves", "mount it again, or: umount -l \(ShellWord.escaped(place))")
            )
        }
        return findings
    }
}
