import FileProvider
import ReplicaTestSupport
import Testing

@testable import Replica

@Suite struct DisplacementTests {
    @Test(arguments: [
        ("a.txt", "a (2).txt"), ("a", "a (2)"), (".profile", ".profile (2)"), ("a.tar.gz", "a.tar (2).gz"),
        ("x.", "x (2)."),
    ])
    func theNumberGoesBeforeTheEnding(_ name: String, _ expected: String) {
        #expect(Displacement.decorated(name, number: 2) == expected)
    }

    @Test func decoratedNamesStayWithinWhatLinuxTakes() {
        for name in [
            String(repeating: "n", count: 255), String(repeating: "é", count: 127) + ".txt",
            "." + String(repeating: "e", count: 254), "a." + String(repeating: "e", count: 253),
        ] {
            let decorated = Displacement.decorated(name, number: 12)
            #expect(decorated.utf8.count <= 255)
            #expect(decorated.hasSuffix(" (12)") || decorated.contains(" (12)."))
        }
    }

    @Test func noLookupCanAskForADisplacedName() {
        #expect(Displacement.isDisplaced(Displacement.name(forItem: 7)))
        #expect(!Displacement.isDisplaced("7"))
    }

    /// While a directory is listed anew, many of its items may wait for the end of the listing without a name.
    @Test("NAME-12: a page of a directory does not end with items that are not shown")
    func pagesGoOnBehindDisplacedItems() async throws {
        let fixture = try ReplicaFixture()
        let replica = try fixture.replica()
        let names = ["-", ".0", "0", "a"]
        try await replica.list(
            (0..<40).map { FileProviderItem.file("f\($0)") } + names.map { FileProviderItem.file($0) },
            open: fixture.open)
        let rows = try replica.database.entries(of: .root, after: 0, limit: 40).map(\.cookie)
        try await replica.database.write { db in
            for row in rows { try db.displace(row) }
        }
        let shown = try replica.database.entries(of: .root, after: 0, limit: 16).map(\.name)
        #expect(shown == names)
    }
}
