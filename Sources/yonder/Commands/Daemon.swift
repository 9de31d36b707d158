import ArgumentParser
import Control

extension Yonder {
    struct Daemon: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Manage the daemon.", subcommands: [Restart.self])

        struct Restart: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Hand the mounts over to the installed daemon. Commands that come meanwhile wait.")

            @OptionGroup var output: OutputOptions

            func run() async throws {
                let daemon = DaemonConnection()
                let old = try await status(daemon)
                let result = try await daemon.perform(.restart(worker: old.worker))
                guard case .done = result else { throw unexpected(result) }
                let new = try await status(daemon)
                try Output(output).print(new) { ["the daemon runs as process \(new.worker)"] }
            }

            private func status(_ daemon: DaemonConnection) async throws -> DaemonStatus {
                let result = try await daemon.perform(.status(nil))
                guard case .status(let report) = result else { throw unexpected(result) }
                return report.daemon
            }
        }
    }
}
