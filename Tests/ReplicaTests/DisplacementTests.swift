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
}
