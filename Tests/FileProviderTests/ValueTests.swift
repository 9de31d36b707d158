import FileProvider
import Testing

@Suite struct ValueTests {
    @Test func timestampsKeepTheirNanoseconds() {
        let time = FileTimestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789)
        #expect(time.nanosecondsSince1970 == 1_700_000_000_123_456_789)
        #expect(time.seconds == 1_700_000_000)
        #expect(time.nanoseconds == 123_456_789)
    }

    @Test(arguments: [-1, -1_000_000_000, -999_999_999, -1_000_000_001, 0, 1, .min, .max] as [Int64])
    func timestampsBefore1970AreRoundedDown(nanoseconds: Int64) {
        let time = FileTimestamp(nanosecondsSince1970: nanoseconds)
        #expect((0..<1_000_000_000).contains(time.nanoseconds))
        if nanoseconds > .min { #expect(FileTimestamp(seconds: time.seconds, nanoseconds: time.nanoseconds) == time) }
    }

    @Test func timesOutsideTheRangeBecomeTheNearest() {
        #expect(FileTimestamp(seconds: .max).nanosecondsSince1970 == .max)
        #expect(FileTimestamp(seconds: .min).nanosecondsSince1970 == .min)
        // One second outside of it, and what would be inside again if the product wrapped around.
        for seconds in [9_223_372_037, 20_000_000_000] as [Int64] {
            #expect(FileTimestamp(seconds: seconds).nanosecondsSince1970 == .max)
            #expect(FileTimestamp(seconds: -seconds).nanosecondsSince1970 == .min)
        }
    }

    @Test func identifiersThatDifferOnlyInUnicodeFormAreTwo() {
        let composed = ItemIdentifier("caf\u{E9}")
        let decomposed = ItemIdentifier("cafe\u{301}")
        #expect(composed.rawValue == decomposed.rawValue)
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed, composed]).count == 2)
        #expect([composed: 1, decomposed: 2][decomposed] == 2)
    }

    @Test func reservedIdentifiersAreKnown() {
        for identifier in [ItemIdentifier.rootContainer, .workingSet, .trashContainer] {
            #expect(identifier.isReserved)
        }
        #expect(!ItemIdentifier("yonder").isReserved)
    }

    @Test func policiesAndFieldsHaveTheNamesThatUsersSee() {
        #expect(
            ContentPolicy.allCases.map(\.name) == ["inherited", "lazy", "lazyEvictOnRemoteUpdate", "keepDownloaded"])
        for policy in ContentPolicy.allCases { #expect(ContentPolicy(name: policy.name) == policy) }
        #expect(ContentPolicy(name: "eager") == nil)
        #expect(ItemFields([.contents, .ownership, .filename]).names == ["contents", "filename", "ownership"])
    }

    @Test func domainNamesCanBeDirectories() {
        for name in ["photos", "my photos", "日本", "a.b"] { #expect(FileProviderDomain.isValid(identifier: name)) }
        for name in ["", ".", "..", "a/b", "a:b", "a\nb", "a\u{7F}", String(repeating: "x", count: 129)] {
            #expect(!FileProviderDomain.isValid(identifier: name), "\(name)")
        }
    }

    @Test func percentEncodingIsExact() {
        #expect(PercentEncoding.encode("a b/ä~-._+%") == "a%20b%2F%C3%A4~-._%2B%25")
        #expect(PercentEncoding.encode("a/b:c", keeping: "/:") == "a/b:c")
        // Also of a name that is no text.
        #expect(PercentEncoding.encode(bytes: [0x41, 0x2F, 0xFF]) == "A%2F%FF")
        #expect(PercentEncoding.decode("%41%c3%A4+") == Array("Aä+".utf8))
        #expect(PercentEncoding.decode("%4") == nil && PercentEncoding.decode("%zz") == nil)
    }
}
