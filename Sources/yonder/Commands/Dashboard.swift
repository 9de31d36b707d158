import ArgumentParser
import Foundation
import Logging
import Syscalls
import SystemPackage
import Web

extension Yonder {
    struct Dashboard: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show domains, transfers, local content and conflicts on a page in the browser.",
            discussion: """
                Serves the page on 127.0.0.1 until Ctrl-C. The address that it prints works once, in one browser; the page stays \
                usable there.
                """)

        @Option(parsing: .unconditional, help: "The port of the page, up to 65535; any free one by default.")
        var port: UInt16 = 0

        @Flag(help: "Print the address, and open no browser.")
        var noBrowser = false

        @OptionGroup var output: OutputOptions

        /// What `--json` prints.
        private struct Report: Encodable {
            var address: String
        }

        func run() async throws {
            let isJSON = output.json
            let connection = DaemonConnection()
            var logger = Logger(label: "yonder")
            logger.logLevel = .error
            let server = DashboardServer(port: Int(port), logger: logger) { command, part in
                try await connection.perform(quietly: command, onPart: part)
            }
            do {
                try await server.run { address in
                    var line = address
                    if isJSON, let json = try? Output.json(Report(address: address), isPretty: false) { line = json }
                    Output.write(line + "\n", to: .standardOutput)
                    if !noBrowser { Self.open(address) }
                }
            } catch Errno.addressInUse where port > 0 {
                throw Output.failure("port \(port) is in use; choose another with --port")
            } catch {
                throw Output.failure("the page cannot be served\(port > 0 ? " on port \(port)" : ""): \(error)")
            }
        }

        /// Opens the user's browser, where there is a desktop.
        private static func open(_ address: String) {
            let environment = ProcessInfo.processInfo.environment
            guard environment["DISPLAY"] != nil || environment["WAYLAND_DISPLAY"] != nil else { return }
            let launch = ChildProcess.Launch("xdg-open", [address], environment: environment, in: nil)
            Task { try? await ChildProcess.start(launch) }
        }
    }
}
