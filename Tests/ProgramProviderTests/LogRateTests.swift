import InMemoryLogging
import Logging
import TestSupport
import Testing

@testable import ProgramProvider

/// The limit of what a program writes to the log.
@Suite struct LogRateTests {
    @Test("lines beyond the limit are counted, and one line says how many are missing") func limit() async {
        let log = InMemoryLogHandler()
        let logger = Logger(label: "test") { _ in log }
        let rate = LogRate(interval: .seconds(1))
        for number in 0..<(LogRate.limit + 7) { rate.log("line \(number)", in: logger) }
        #expect(log.entries.count == LogRate.limit)
        // Without another line.
        #expect(await eventually { log.entries.count > LogRate.limit })
        #expect(log.entries.last.map { "\($0.message)" }?.hasSuffix("are logged: 7") == true)
        rate.log("later", in: logger)
        #expect(log.entries.last.map { "\($0.message)" } == "later")
    }

    @Test("the end of the program reports them at once") func end() {
        let log = InMemoryLogHandler()
        let logger = Logger(label: "test") { _ in log }
        let rate = LogRate()
        for _ in 0...LogRate.limit { rate.log("line", in: logger) }
        for _ in 0..<2 { rate.report(in: logger) }
        #expect(log.entries.count == LogRate.limit + 1)
        #expect(log.entries.last.map { "\($0.message)" }?.hasSuffix("are logged: 1") == true)
    }
}
