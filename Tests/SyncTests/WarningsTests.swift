import InMemoryLogging
import Logging
import Replica
import Testing

@testable import Sync

@Suite struct WarningsTests {
    @Test("a warning goes when its cause succeeds, and is logged once") func causes() {
        let log = InMemoryLogHandler()
        let warnings = Warnings(logger: Logger(label: "test") { _ in log })
        warnings.report("stays")
        for _ in 0..<2 {
            warnings.report("fails", of: .reimport)
            warnings.report("fails", of: .reimport)
            warnings.report("is odd", of: .listing(.root))
            #expect(warnings.texts == ["stays", "fails (2 times)", "is odd"])
            warnings.succeeded(.sending)
            #expect(warnings.texts.count == 3)
            warnings.succeeded(.listing(.root))
            warnings.succeeded(.reimport)
            #expect(warnings.texts == ["stays"])
        }
        for number: Int64 in [1, 2] { warnings.report("both", of: .content(InodeNumber(rawValue: number))) }
        warnings.succeeded(.content(InodeNumber(rawValue: 1)))
        #expect(warnings.texts == ["stays", "both (2 times)"])
        warnings.succeeded(.content(InodeNumber(rawValue: 2)))
        warnings.withdraw("stays")
        #expect(warnings.texts == [])
        #expect(log.entries.map { "\($0.message)" } == ["stays", "fails", "is odd", "both"])
    }
}
