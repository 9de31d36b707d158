import Testing

@testable import FileProviderPaths

@Suite struct PathItemsTests {
    @Test("a version stands for one tag, and says when it is only a digest of it") func versions() {
        let tags = [
            Array("tag".utf8), Array("?".utf8), Array("tag?".utf8), Array("tag??".utf8),
            Array(repeating: UInt8(ascii: "x"), count: 120), Array(repeating: UInt8(ascii: "x"), count: 121),
            Array(repeating: UInt8(ascii: "x"), count: 500), Array(repeating: UInt8(ascii: "?"), count: 500),
        ]
        var versions: Set<[UInt8]> = []
        for tag in tags {
            let version = PathItems.version(ofTag: tag)
            #expect(!PathItems.isUnsettled(version))
            for version in [version, PathItems.unsettledVersion(of: version)] {
                #expect(versions.insert(version).inserted)
                let known = PathItems.tag(ofVersion: version)
                #expect(known == nil || known == tag)
                // An ordinary tag needs no look at the remote.
                if tag.count <= 120, tag.last != UInt8(ascii: "?") { #expect(known == tag) }
            }
            #expect(PathItems.settledVersion(of: PathItems.unsettledVersion(of: version)) == version)
        }
    }
}
