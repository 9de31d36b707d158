import Control
import Testing

@testable import yonder

@Suite struct ProgressLines {
    private func line(_ path: String, bytes: Int64 = 3 << 20, rate: Int64? = 2048, columns: Int = 80) -> String {
        ProgressLine.text("downloaded", ControlEvent(path: path, items: 2, bytes: bytes), rate: rate, columns: columns)
    }

    @Test("CMD-15: the line shows items, bytes, rate and name, and fits into the terminal") func text() {
        #expect(line("/m/d/file") == "downloaded 2 items, 3.0 MiB, 2.0 KiB/s  file")
        #expect(line("/m/d/file", rate: nil) == "downloaded 2 items, 3.0 MiB  file")
        for columns in [0, 1, 2, 40, 80] {
            let text = line("/m/" + String(repeating: "n", count: 255), columns: columns)
            #expect(text.count == max(0, columns - 1))
        }
        #expect(!line("/m/a\n\u{1B}[31m").contains { $0.isNewline || $0 == "\u{1B}" })
    }

    @Test("CMD-15: the rate is that of the last seconds") func rates() {
        var rate = TransferRate()
        let start = ContinuousClock.now
        func perSecond(_ bytes: Int64, after milliseconds: Int) -> Int64? {
            rate.perSecond(bytes, at: start + .milliseconds(milliseconds))
        }
        #expect(perSecond(0, after: 0) == nil)
        #expect(perSecond(500, after: 500) == nil)
        #expect(perSecond(1000, after: 1000) == 1000)
        for second in 2...20 { _ = perSecond(1000, after: 1000 * second) }
        #expect(perSecond(1000, after: 21_000) == 0)
        // What is counted anew.
        #expect(perSecond(10, after: 21_500) == 0)
        var nothing = TransferRate()
        #expect(nothing.perSecond(0, at: start) == nil && nothing.perSecond(0, at: start + .seconds(2)) == nil)
    }
}
