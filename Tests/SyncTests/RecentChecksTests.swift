import FileProvider
import Testing

@testable import Sync

@Suite struct RecentChecksTests {
    @Test("CHANGE-4: of many checks none is forgotten before its time") func many() {
        let checks = RecentChecks(trust: .seconds(600))
        let items = (0..<3000).map { ItemIdentifier("\($0)") }
        for item in items { checks.notePassed(item) }
        #expect(items.allSatisfy { checks.hasPassed($0) })
        #expect(!checks.hasPassed("other"))
    }

    @Test func checksCountForAWhile() {
        let checks = RecentChecks(trust: .zero)
        for number in 0..<3000 { checks.notePassed(ItemIdentifier("\(number)")) }
        #expect(!checks.hasPassed("2999"))
    }
}
