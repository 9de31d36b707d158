import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Synchronization
import Testing

@testable import Sync

/// Thumbnails in pictures, and their fetching.
@Suite("thumbnails") struct ThumbnailTests {
    /// The bytes of an image, as far as they are looked at.
    private static let image: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDB, 1, 2, 3, 4]
    /// What an image becomes that is to be turned: a segment of fields, with the orientation at its end.
    private static func turned(_ orientation: UInt8) -> [UInt8] {
        let fields: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]
        return [0xFF, 0xD8, 0xFF, 0xE1, 0, 34] + Array("Exif\0\0".utf8) + fields + [0, 0, 0, 0] + image.dropFirst(2)
    }

    private static func number(_ value: Int, _ count: Int, _ isLittleEndian: Bool) -> [UInt8] {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        return isLittleEndian ? bytes : bytes.reversed()
    }

    /// TIFF fields of a picture that is to be turned, with a thumbnail.
    private static func fields(isLittleEndian little: Bool, orientation: Int = 6) -> [UInt8] {
        let number = { Self.number($0, $1, little) }
        func entry(_ tag: Int, _ type: Int, _ value: [UInt8]) -> [UInt8] {
            number(tag, 2) + number(type, 2) + number(1, 4) + value + Array(repeating: 0, count: 4 - value.count)
        }
        var bytes = Array((little ? "II" : "MM").utf8) + number(42, 2) + number(8, 4)
        bytes += number(1, 2) + entry(0x0112, 3, number(orientation, 2)) + number(26, 4)
        bytes +=
            number(2, 2) + entry(0x0201, 4, number(56, 4)) + entry(0x0202, 4, number(image.count, 4)) + number(0, 4)
        return bytes + image
    }

    /// A JPEG file with fields, after a segment of another kind.
    private static func picture(_ fields: [UInt8]) -> [UInt8] {
        let exif = Array("Exif\0\0".utf8) + fields
        return [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 7, 7, 0xFF, 0xE1] + number(exif.count + 2, 2, false) + exif
            + [0xFF, 0xDA, 0, 2] + Array(repeating: 9, count: 100)
    }

    @Test(
        "the thumbnail of a picture is found in both byte orders, in JPEG and in raw files", arguments: [true, false])
    func found(isLittleEndian: Bool) {
        let fields = Self.fields(isLittleEndian: isLittleEndian)
        #expect(EmbeddedThumbnail.find(in: Self.picture(fields)[...]) == Self.turned(6))
        #expect(EmbeddedThumbnail.find(in: fields[...]) == Self.turned(6))
        // Also where the bytes do not begin at index 0.
        #expect(EmbeddedThumbnail.find(in: ([1, 2, 3] + Self.picture(fields))[3...]) == Self.turned(6))
    }

    @Test("a picture that is cut off or damaged has no thumbnail, and does no harm") func damaged() {
        let whole = Self.picture(Self.fields(isLittleEndian: false))
        let needed = whole.count - 104
        for length in 0..<needed { #expect(EmbeddedThumbnail.find(in: whole.prefix(length)) == nil) }
        // An orientation that is no short number.
        var long = whole
        let type = 31
        #expect(long[type] == 3)
        long[type] = 4
        #expect(EmbeddedThumbnail.find(in: long[...]) == Self.turned(1))
        // No value of any byte does harm, alone or with another one.
        for first in 0..<needed {
            for value in [0, 1, 3, 4, 5, 0x7F, 0x80, 0xFE, 0xFF] as [UInt8] {
                var bytes = whole
                bytes[first] = value
                _ = EmbeddedThumbnail.find(in: bytes[...])
                for second in first + 1..<needed {
                    var both = bytes
                    both[second] = 0xFF
                    _ = EmbeddedThumbnail.find(in: both[...])
                }
            }
        }
    }

    private func outcomes(_ fixture: EngineFixture, _ identifiers: [ItemIdentifier]) async throws -> [String: [UInt8]?]
    {
        let found = Mutex<[String: [UInt8]?]>([:])
        let items = try identifiers.compactMap { try fixture.replica.database.item($0) }
        await fixture.engine.fetchThumbnails(of: items) { item, outcome in
            found.withLock { found in
                switch outcome {
                case .image(let image): found[item.name] = .some(image)
                case .none: found[item.name] = .some(nil)
                case .failed(let error): Issue.record("\(error)")
                }
            }
        }
        return found.withLock { $0 }
    }

    @Test("LIMIT-7: only the beginning of a large picture is fetched, and nothing of it is kept") func beginning()
        async throws
    {
        let picture = Self.picture(Self.fields(isLittleEndian: true)) + Array(repeating: 5, count: 1 << 20)
        try await EngineFixture.run(fill: {
            $0.addFile("a.JPG", content: .bytes(picture), identifier: "a")
            $0.addFile("b.jpg", content: .pattern(size: 1 << 20, seed: 1), identifier: "b")
            $0.addFile("c.txt", content: .pattern(size: 1 << 20, seed: 2), identifier: "c")
            $0.addFile("d.png", content: .bytes([1, 2, 3]), identifier: "d")
            $0.addFile("e.png", content: .pattern(size: 1 << 20, seed: 3), identifier: "e")
            // Nothing makes a thumbnail of this format.
            $0.addFile("f.svg", content: .bytes([1, 2, 3]), identifier: "f")
        }) { fixture in
            try await fixture.list()
            let found = try await outcomes(fixture, ["a", "b", "c", "d", "e", "f"])
            #expect(
                found == [
                    "a.JPG": Self.turned(6), "b.jpg": nil, "c.txt": nil, "d.png": [1, 2, 3], "e.png": nil,
                    "f.svg": nil,
                ])
            #expect(fixture.engine.traffic.received == 2 * EmbeddedThumbnail.reach + 3)
            for item in ["a", "b", "d"] as [ItemIdentifier] { #expect(try fixture.inode(item).content == .dataless) }
        }
    }

    private static let preview: [UInt8] = [7, 7, 7]

    /// A remote with previews of the file `p`. The others are pictures with a thumbnail in them, but for `c`.
    private static func previewed(_ test: (EngineFixture, [ItemIdentifier]) async throws -> Void) async throws {
        let picture = Self.picture(fields(isLittleEndian: true)) + Array(repeating: 5, count: 1 << 20)
        try await EngineFixture.run(
            options: .with(\.thumbnails, ["p": preview]),
            fill: {
                for name in ["a", "b", "p"] {
                    $0.addFile("\(name).jpg", content: .bytes(picture), identifier: ItemIdentifier(name))
                }
                $0.addFile("c.png", content: .pattern(size: 1 << 20, seed: 3), identifier: "c")
            }, listing: "/"
        ) { try await test($0, ["a", "b", "c", "p"]) }
    }

    @Test("a picture whose preview the server does not have, or fails to make, gets the thumbnail in it")
    func noPreview() async throws {
        try await Self.previewed { fixture, items in
            fixture.provider.faults.fail(.thumbnail, of: "a", with: FileProviderError(.malformedResponse), times: nil)
            let found = try await outcomes(fixture, items)
            #expect(
                found == [
                    "a.jpg": Self.turned(6), "b.jpg": Self.turned(6), "c.png": nil, "p.jpg": Self.preview,
                ])
        }
    }

    @Test("a server that rejects one preview and answers otherwise is not asked for more of this batch")
    func rejectedPreview() async throws {
        try await Self.previewed { fixture, items in
            fixture.provider.faults.fail(.thumbnail, with: FileProviderError(.notAuthenticated), times: nil)
            let found = try await outcomes(fixture, items)
            #expect(
                found == [
                    "a.jpg": Self.turned(6), "b.jpg": Self.turned(6), "c.png": nil, "p.jpg": Self.turned(6),
                ])
            #expect(fixture.provider.log.count(of: .thumbnail) == 1)
            #expect(fixture.engine.connection.state == .online)
        }
    }

    @Test("a server that rejects everything, or does not answer, ends the batch with that", arguments: [true, false])
    func noServer(isThere: Bool) async throws {
        try await Self.previewed { fixture, items in
            let code = isThere ? FileProviderError.Code.notAuthenticated : .serverUnreachable
            fixture.provider.faults.failEverything(with: FileProviderError(code))
            let failed = Mutex<[String: FileProviderError.Code]>([:])
            let records = try items.compactMap { try fixture.replica.database.item($0) }
            await fixture.engine.fetchThumbnails(of: records) { item, outcome in
                if case .failed(let error) = outcome { failed.withLock { $0[item.name] = error.code } }
            }
            #expect(failed.withLock { $0 } == ["a.jpg": code, "b.jpg": code, "c.png": code, "p.jpg": code])
            #expect(fixture.provider.log.count(of: .thumbnail) == 1)
            #expect(fixture.provider.log.count(of: .fetch) == 0)
        }
    }
}
