import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// Thumbnails as the programs of a desktop share them.
@Suite("the cache of thumbnails") struct ThumbnailCacheTests {
    /// A PNG file of one pixel.
    private static let pixel = Data(
        base64Encoded:
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")

    private func pixel() throws -> PNGFile {
        let bytes = Array(try #require(Self.pixel))
        return try #require(PNGFile(bytes))
    }

    @Test("texts are added once, with checksums that another program accepts") func texts() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        var image = try pixel()
        #expect(image.texts == [:])
        image.set(["Thumb::URI": "file:///a", "Software": "Yonder"])
        #expect(image.texts == ["Thumb::URI": "file:///a", "Software": "Yonder"])
        let length = image.bytes.count
        image.set(["Thumb::URI": "file:///a"])
        #expect(image.bytes.count == length)
        let file = try directory.makeFile("image.png", image.bytes)
        let read = """
            import struct, sys, zlib
            data = open(sys.argv[1], "rb").read()[8:]
            while data:
                n, = struct.unpack(">I", data[:4])
                assert struct.unpack(">I", data[8 + n:12 + n])[0] == zlib.crc32(data[4:8 + n]), data[4:8]
                print(data[4:8].decode(), end=" ")
                data = data[12 + n:]
            """
        #expect(try await Command.run("python3", "-c", read, file.string).output == "IHDR tEXt tEXt IDAT IEND ")
        #expect(PNGFile(Array(image.bytes.prefix(20))) == nil)
        #expect(PNGFile([]) == nil)
        let cut = try #require(PNGFile(Array(image.bytes.prefix(40))))
        #expect(cut.texts == [:])
    }

    @Test(
        "a file's URI is that of GLib",
        arguments: [
            ("/a b/ä", "file:///a%20b/%C3%A4"),
            ("/x;&=+$,!~*'()#?[]%@:^|<>\"`{}\\", "file:///x%3B&=+$,!~*'()%23%3F%5B%5D%25@:%5E%7C%3C%3E%22%60%7B%7D%5C"),
        ])
    func uris(path: String, uri: String) {
        #expect(ThumbnailCache.Subject(FilePath(path), modifiedAt: 0).uri == uri)
    }

    @Test("a thumbnail is valid for one modification time, where all sizes are there") func validity() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let cache = try #require(ThumbnailCache(environment: ["XDG_CACHE_HOME": directory.path.string]))
        let subject = ThumbnailCache.Subject("/m/a.jpg", modifiedAt: 7)
        #expect(cache.images(of: subject) == nil)
        try cache.store(["large": try pixel()], of: subject)
        #expect(cache.images(of: subject) == nil)
        try cache.store(["normal": try pixel()], of: subject)
        #expect(cache.images(of: subject)?.count == 2)
        #expect(cache.images(of: ThumbnailCache.Subject("/m/a.jpg", modifiedAt: 8)) == nil)
        // As `printf file:///m/a.jpg | md5sum`.
        let name = "thumbnails/large/069f6602c8d6ecf1621394e6ad55a87c.png"
        #expect(FileManager.default.fileExists(atPath: directory[name].string))
        #expect(ThumbnailCache(environment: ["XDG_CACHE_HOME": "relative"]) == nil)
        #expect(ThumbnailCache(environment: ["HOME": "/h"])?.directory == "/h/.cache/thumbnails")
    }

    @Test("records of programs that could make no thumbnail are removed for one file and one modification time")
    func failures() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let cache = try #require(ThumbnailCache(environment: ["XDG_CACHE_HOME": directory.path.string]))
        let subject = ThumbnailCache.Subject("/m/a.jpg", modifiedAt: 7)
        let other = ThumbnailCache.Subject("/m/b.jpg", modifiedAt: 7)
        #expect(!cache.removeFailures(of: subject))
        try cache.store(["fail/one": try pixel(), "fail/two": try pixel()], of: subject)
        try cache.store(["fail/one": try pixel()], of: other)
        #expect(!cache.removeFailures(of: ThumbnailCache.Subject("/m/a.jpg", modifiedAt: 8)))
        #expect(cache.removeFailures(of: subject))
        #expect(!cache.removeFailures(of: subject))
        // One that another program has given the name of this file's.
        let names = try FileManager.default.contentsOfDirectory(atPath: cache.directory.appending("fail/one").string)
        #expect(names.count == 1)
        try FileManager.default.copyItem(
            atPath: cache.directory.appending("fail/one").appending(try #require(names.first)).string,
            toPath: cache.directory.appending("fail/one/069f6602c8d6ecf1621394e6ad55a87c.png").string)
        #expect(!cache.removeFailures(of: subject))
        #expect(cache.removeFailures(of: other))
    }
}

extension RealMount {
    /// What thumbnailers get.
    @Suite struct Thumbnailing {
        /// A JPEG file of 16 by 12 pixels.
        private static let image = Data(
            base64Encoded: "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAFA3PEY8MlBGQUZaVVBfeMiCeG5uePWvuZHI//////////////////////"
                + "//////////////////////////////wAALCAAMABABAREA/8QAFQABAQAAAAAAAAAAAAAAAAAAAAP/xAAUEAEAAAAAAAAAAAAA"
                + "AAAAAAAA/9oACAEBAAA/AJgP/9k=")

        @Test("LIMIT-7: a thumbnailer is refused to open, gets thumbnails in the user's cache, and downloads nothing")
        func makes() async throws {
            let image = Array(try #require(Self.image))
            try await Installation.run { installation in
                let yonder = installation.with(["XDG_CACHE_HOME": installation.directory["cache"].string])
                for name in ["a.jpg", "b.jpg", "c d.jpg"] {
                    try Data(image).write(to: URL(fileURLWithPath: yonder.source.appending(name).string))
                }
                try yonder.write("text", to: "broken.jpg")
                let thumbnailer = yonder.directory["my-thumbnailer"].string
                try FileManager.default.copyItem(atPath: "/bin/cat", toPath: thumbnailer)
                let opener = yonder.directory["open-thumbnailer"].string
                try FileManager.default.copyItem(atPath: "/bin/dash", toPath: opener)
                try await yonder.mountSource()
                #expect(try await Command.run("ls", yonder.mount.string).status == 0)
                // Both are refused; the second is found to have none.
                for name in ["a.jpg", "broken.jpg"] {
                    let refused = try await Command.run(thumbnailer, yonder[name])
                    #expect(refused.status == 1 && refused.output == "", "\(refused.errors)")
                    // `cat` names the file in the same way when it cannot be read: a shell tells what has failed.
                    let shell = try await Command.run(opener, "-c", "exec 3< \"$1\"", "sh", yonder[name])
                    #expect(shell.errors.contains("cannot open"), "\(shell.errors)")
                }
                let cache = try #require(ThumbnailCache(environment: yonder.environment))
                // The next files in the directory have theirs, too.
                for name in ["a.jpg", "b.jpg", "c d.jpg"] {
                    let date = try await Command.run("stat", "-c", "%Y", yonder[name]).output.dropLast()
                    let subject = ThumbnailCache.Subject(
                        yonder.mount.appending(name), modifiedAt: try #require(Int64(date)))
                    #expect(await eventually(within: .seconds(20)) { cache.images(of: subject) != nil })
                    let images = try #require(cache.images(of: subject), "\(name)")
                    // The width in the header.
                    #expect(
                        images.mapValues { $0.bytes[18..<20].map(Int.init).reduce(0) { $0 << 8 | $1 } } == [
                            "large": 256, "normal": 128,
                        ])
                    #expect(try await yonder.info(name).content == "dataless")
                }
                #expect(
                    try FileManager.default.contentsOfDirectory(
                        atPath: yonder.directory["state/domains/mount/scaling"].string
                    ).isEmpty)
                // Everyone else reads as ever.
                #expect(
                    try await Command.run("cmp", yonder["a.jpg"], yonder.source.appending("a.jpg").string).status == 0)
            }
        }
    }
}
