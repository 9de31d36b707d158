import Logging
import Synchronization
import Web

/// Serves the metrics on an address as long as the daemon runs. While the address is taken it tries again.
final class MetricsExporter: Sendable {
    private let address: ListeningAddress
    private let logger: Logger
    private let failure = Mutex<String?>(nil)
    private static let pause = Duration.seconds(5)

    init(at address: ListeningAddress, logger: Logger) {
        self.address = address
        self.logger = logger
    }

    /// Why nothing is served; nil while it is.
    var complaint: String? { failure.withLock(\.self) }

    /// Serves until the task is cancelled.
    func run(_ text: @escaping @Sendable () async throws -> String) async {
        var logger = logger
        // A daemon that serves its metrics says so itself.
        logger.logLevel = .warning
        while !Task.isCancelled {
            do {
                try await MetricsServer(at: address, logger: logger, text: text).run { [weak self] in self?.begins() }
                return
            } catch {
                if note("metrics cannot be served on \(address): \(error)") {
                    logger.warning("metrics cannot be served on \(address), and that is tried again: \(error)")
                }
            }
            try? await Task.sleep(for: Self.pause)
        }
    }

    private func begins() {
        failure.withLock { $0 = nil }
        logger.notice("metrics are served on http://\(address)/metrics")
    }

    /// - Returns: whether it is the first failure since metrics were served.
    private func note(_ text: String) -> Bool {
        failure.withLock { failure in
            defer { failure = text }
            return failure == nil
        }
    }
}
