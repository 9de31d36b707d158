import ArgumentParser
import Control
import Foundation

extension Yonder {
    struct Metrics: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the daemon's metrics as Prometheus reads them.",
            discussion: """
                With 'address' in the section [metrics] of the configuration, the daemon serves the same text on \
                http://ADDRESS/metrics.
                """)

        func run() async throws {
            let result = try await DaemonConnection().perform(.metrics)
            guard case .metrics(let text) = result else { throw unexpected(result) }
            Output.write(text, to: .standardOutput)
        }
    }
}
