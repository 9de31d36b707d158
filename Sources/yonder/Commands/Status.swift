import ArgumentParser
import Control
import Foundation

extension Yonder {
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the state of domains: connection, items, local content, transfers.")

        @Flag(help: "Refresh every second, until Ctrl-C.")
        var watch = false

        @OptionGroup var domain: DomainArgument

        func run() async throws {
            let daemon = DaemonConnection()
            while true {
                // A request would wait for a daemon that runs.
                if let loop = daemon.crashLoop {
                    throw Output.failure(loop.description, exit: ControlError.Code.unavailable.exitStatus)
                }
                let result = try await daemon.perform(.status(domain.name))
                guard case .status(let report) = result else { throw unexpected(result) }
                let unsent = domain.name == nil ? try await AllDomains(daemon: daemon).unsent() : []
                if watch, Terminal.isStandardOutput, !domain.output.json {
                    Output.write("\u{1B}[H\u{1B}[2J", to: .standardOutput)
                }
                try Output(domain.output).print(report) {
                    report.domains.isEmpty
                        ? ["no domain is mounted"] + Self.lines(for: report.daemon)
                        : report.domains.flatMap(Self.lines) + Self.lines(for: report.readers)
                            + Self.lines(for: report.daemon)
                }
                AllDomains.complain(aboutUnsent: unsent)
                guard watch else { return }
                Output.endWithoutReader()
                try await Task.sleep(for: .seconds(1))
            }
        }

        private static func lines(for daemon: DaemonStatus) -> [String] {
            ((daemon.withoutRoom ?? []) + (daemon.warnings ?? [])).map { "warning  \($0)" }
        }

        private static func lines(for readers: [ReaderStatus]) -> [String] {
            guard !readers.isEmpty else { return [] }
            return ["fetched for"]
                + readers.map { reader in
                    let limit = reader.limit.map { " of \(ByteText.text($0))" } ?? ""
                    let end = reader.isRefused ? ", and gets no more" : ""
                    return
                        "  \(reader.name) (pid \(reader.process))  \(ByteText.text(reader.fetched))\(limit)\(end)"
                }
        }

        private static func lines(for domain: DomainStatus) -> [String] {
            let reason = domain.reason.map { ": \($0)" } ?? ""
            let limit = domain.bytes.limit.map { " of \(ByteText.text($0))" } ?? ""
            var lines = [
                "\(domain.name) on \(domain.mountpoint), from \(domain.source)",
                "  connection  \(domain.connection.rawValue)\(reason)",
                "  items       \(domain.items.known) known, \(Output.count(domain.items.materializedFiles, "file")) and "
                    + "\(Output.count(domain.items.materializedDirectories, "directory", "directories")) here",
                "  local       \(ByteText.text(domain.bytes.local))\(limit)",
                "  pending     \(Output.count(domain.pending.items, "item")), \(ByteText.text(domain.pending.bytes))",
                "  failed      \(domain.failed)",
            ]
            if let reimport = domain.reimport {
                lines.append(
                    "  reimport    \(reimport.done) of \(reimport.total) items\(reimport.isCounting ? ", counting" : "")"
                )
            }
            for transfer in domain.transfers {
                let percent = ByteText.percent(transfer.done, of: transfer.total)
                lines.append(
                    "  \(transfer.direction)    \(percent) % of \(ByteText.text(transfer.total))  "
                        + transfer.path)
            }
            lines += domain.warnings.map { "  warning     \($0)" }
            return lines
        }
    }
}
