import Control
import Foundation
import Logging
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// A place for a log.
private final class Page: Sendable {
    private let content = Mutex("")

    var text: String { content.withLock { $0 } }

    func write(_ string: String) { content.withLock { $0 += string } }
}

private struct Failure: Error, CustomStringConvertible {
    var description: String
}

@Suite struct OneLineLogTests {
    @Test("LOG-1: what comes from outside makes no line of its own in the log") func isOneLineEach() {
        let page = Page()
        var logger = Logger(label: "test") { _ in EscapingLogHandler(Lines(page: page)) }
        logger[metadataKey: "one"] = "x\ny"
        logger.warning("a\nb \u{1B}[31m", metadata: ["two": ["p\nq"]])
        logger.log(level: .error, "failed", error: Failure(description: "1\n2"))
        let lines = page.text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 3 && lines.last == "", "\(page.text)")
        #expect(page.text.contains("a\\nb \\x{1b}[31m") && !page.text.contains("\u{1B}"), "\(page.text)")
    }

    /// Writes all that a log has been given.
    private struct Lines: LogHandler {
        let page: Page
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        init(page: Page) { self.page = page }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            page.write("\(event.message) \(metadata) \(event.metadata ?? [:]) \(event.error.map { "\($0)" } ?? "")\n")
        }
    }
}

extension RealMount {
    @Suite struct Logs {
        @Test("LOG-1: a server cannot forge lines of the log") func hrefs() async throws {
            let server = try await ScriptedServer("odd_server.py")
            defer { server.stop() }
            try await Installation.run { installation in
                let yonder = installation.with(["NETRC": "/nonexistent"])
                let mounted = try await yonder.yonder(
                    "mount", "webdav://127.0.0.1:\(server.port)/forged", yonder.mount.string, seconds: 30)
                try #require(mounted.status == 0, "\(mounted.errors)")
                #expect(try await Command.run("ls", yonder.mount.string).output == "good\n")
                let log = yonder.directory["state/yonderd.log"].string
                func text() -> String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
                #expect(await eventually { text().contains("outside") })
                #expect(!text().contains("\u{1B}") && !text().contains("\nforged"), "\(text())")
                #expect(text().contains("outside\\nforged line\\x{1b}[31m"), "\(text())")
            }
        }
    }
}
