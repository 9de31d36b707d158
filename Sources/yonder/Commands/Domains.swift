import ArgumentParser
import Control

extension Yonder {
    struct Unmount: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Unmount a domain. Its replica and pending changes stay for the next mount.")

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: DomainReference

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let daemon = DaemonConnection()
            // A new daemon can detach the mounts of a killed one.
            if !(await daemon.answers()), AbsolutePath.isInMount(name) { _ = try await daemon.start() }
            let result = try await daemon.perform(.unmount(name))
            guard case .unmounted(let report) = result else { throw unexpected(result) }
            try Output(output).print(report) {
                let rest =
                    report.pending == 0
                    ? "nothing is pending" : "\(Output.count(report.pending, "change is", "changes are")) pending"
                return ["'\(Output.shown(report.name))' is unmounted; \(rest)"]
            }
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
                        [
                            Output.shown(domain.name), domain.isMounted ? "mounted" : "not mounted",
                            Output.shown(domain.mountpoint ?? "-"), Output.shown(domain.source),
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

        func run() async throws {
            _ = try await DaemonConnection().perform(.signal(name, waits: wait))
        }
    }

    struct Shutdown: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Stop the daemon. All domains are unmounted; replicas and pending changes stay.")

        func run() async throws {
            _ = try await DaemonConnection().perform(.shutdown)
        }
    }
}
