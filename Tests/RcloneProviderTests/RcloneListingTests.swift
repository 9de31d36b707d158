import FileProvider
import FileProviderPaths
import Testing

@testable import RcloneProvider

@Suite struct RcloneListingTests {
    private static func entries(_ count: Int) -> [RemoteEntry] {
        (0..<count).map { RemoteEntry(name: "\($0)", kind: .file, tag: [], isTagStrong: false, size: 0) }
    }

    @Test("RCLONE-12: a listing is given in parts, and what is left is not copied for each") func parts() throws {
        let listings = RcloneListings()
        let all = Self.entries(10)
        let place = all.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
        var rest = all[...]
        for count in [7, 4, 1] {
            let part = listings.part(of: rest, 3)
            #expect(part.entries == Array(rest.prefix(3)))
            let next = try #require(part.next)
            rest = try #require(listings.take(next))
            #expect(rest.count == count && listings.take(next) == nil)
            let start = rest.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
            #expect(start == place + UInt((10 - count) * MemoryLayout<RemoteEntry>.stride))
        }
        #expect(listings.part(of: rest, 3).next == nil)
    }

    @Test("The rests of the oldest listings are forgotten") func oldest() throws {
        let listings = RcloneListings()
        let tokens = try (0..<65).map { _ in try #require(listings.part(of: Self.entries(2)[...], 1).next) }
        #expect(listings.take(tokens[0]) == nil && listings.take(tokens[1])?.count == 1)
    }
}
