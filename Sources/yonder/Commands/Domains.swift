import ArgumentParser
import Control

extension Yonder {
    struct Unmount: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Unmount a domain. Its replica and pending changes stay for the next mount.")

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: DomainReference?

        @Flag(help: "Unmount all domains.")
        var all = false

        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard all != (name != nil) else {
                throw ValidationError(all ? "--all takes no name" : "Missing expected argument '<name>'")
            }
        }

        func run() async throws {
            let daemon = DaemonConnection()
            // A new daemon can detach the mounts of a killed one.
            if !(await daemon.answers()), name.map(AbsolutePath.isInMount) ?? AbsolutePath.isAnythingMounted {
                _ = try await daemon.start()
            }
            guard let name else { return try await unmountAll(daemon) }
            let report = try await unmount(name, daemon)
            try Output(output).print(report) { [Self.line(for: report)] }
        }

        private func unmount(_ name: DomainReference, _ daemon: DaemonConnection) async throws -> UnmountReport {
            let result = try await daemon.perform(.unmount(name))
            guard case .unmounted(let report) = result else { throw unexpected(result) }
            return report
        }

        private static func line(for report: UnmountReport) -> String {
            let rest =
                switch report.pending {
                case nil: "what is pending could not be counted"
                case 0: "nothing is pending"
                case let count?: "\(Output.count(count, "change is", "changes are")) pending"
                }
            return "'\(report.name)' is unmounted; \(rest)"
        }

        private func unmountAll(_ daemon: DaemonConnection) async throws {
            let (reports, isComplete) = try await AllDomains(daemon: daemon).perform(where: \.isMounted) { domain in
                try await unmount(DomainReference(text: domain.name, path: "/"), daemon)
            }
            try Output(output).print(reports) { reports.map(Self.line) }
            if !isComplete { throw ExitCode(1) }
        }
    }

    struct Domains: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the known domains.")

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let result = try await DaemonConnection().perform(.domains)
            guard case .domains(let domains) = result else { throw unexpected(result) }
            try Output(output).print(domains) {
                Output.table(
                    domains.map { domain in
                        let unsent =
                            domain.unsent.map { $0 > 0 ? ", \(Output.count($0, "change")) not sent" : "" } ?? ""
                        return [
                            domain.name, domain.isMounted ? "mounted" : "not mounted" + unsent,
                            domain.mountpoint ?? "-", domain.source,
                        ]
                    })
            }
        }
    }

    struct Signal: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Fetch changes from the remote now.")

        @Argument(help: "The domain's name, or a path in its mount; all domains by default.")
        var name: DomainReference?

        @Flag(help: "Return when the changes have been applied.")
        var wait = false

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let result = try await DaemonConnection().perform(.signal(name, waits: wait))
            guard case .signalled(let held) = result else { throw unexpected(result) }
            try Output(output).print(SignalReport(heldRemovals: held)) { [] }
            for warning in held { Output.complain(warning) }
        }
    }

    struct Shutdown: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Stop the daemon. All domains are unmounted; replicas and pending changes stay.")

        func run() async throws {
            let daemon = DaemonConnection()
            let processes = daemon.processes
            _ = try await daemon.perform(.shutdown)
            guard await processes.waitForEnd() else {
                throw Output.failure(
                    "all domains are unmounted, but the daemon has not ended after ten seconds", exit: 75)
            }
        }
    }
}
