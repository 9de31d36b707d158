import Hummingbird
import Logging
import NIOCore
import SystemPackage

/// Answers `GET /metrics` with the text that Prometheus reads.
package struct MetricsServer: Sendable {
    private let address: ListeningAddress
    private let logger: Logger
    private let text: @Sendable () async throws -> String

    /// - Parameter text: makes the text anew for each request.
    package init(at address: ListeningAddress, logger: Logger, text: @escaping @Sendable () async throws -> String) {
        self.address = address
        self.logger = logger
        self.text = text
    }

    /// Serves until the task is cancelled.
    ///
    /// - Throws: `Errno` if it cannot listen.
    package func run(onListening: @escaping @Sendable () -> Void) async throws {
        let router = Router()
        router.get("metrics") { [text] _, _ in
            Response(
                status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: try await text())))
        }
        let application = Application(
            router: router,
            configuration: ApplicationConfiguration(address: .hostname(address.host, port: address.port)),
            onServerRunning: { _ in onListening() }, logger: logger)
        do {
            try await application.run()
        } catch let error as IOError {
            throw Errno(rawValue: error.errnoCode)
        }
    }
}
