import FileProvider
import FileProviderTesting
import Foundation
import ProgramProvider

extension OtherClient {
    /// Throws unless the program makes thumbnails as the protocol has it, if it has announced any. A file without one is no mistake.
    func checkThumbnails() async throws {
        guard let program, program.hasThumbnails else { return }
        var images: [[UInt8]] = []
        for picture in [Self.redPicture, Self.bluePicture] {
            try await write(picture, to: "picture.png")
            if let image = try await thumbnail(of: "picture.png", program) { images.append(image) }
        }
        if images.count == 2, images[0] == images[1] {
            throw ConformanceFailure("the thumbnail of a picture is the same after another picture was written")
        }
        try await write(Array("text".utf8), to: "text")
        _ = try await thumbnail(of: "text", program)
        let gone = try await reference(to: "text")
        try await delete("text")
        do {
            _ = try await program.thumbnail(of: gone, size: Self.size)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return
        }
        throw ConformanceFailure("asking for the thumbnail of a deleted file succeeds, and must be noSuchItem")
    }

    /// - Throws: the program's error; a failure for a thumbnail that is no image.
    private func thumbnail(of path: String, _ program: any ProgramReading) async throws -> [UInt8]? {
        guard let image = try await program.thumbnail(of: reference(to: path), size: Self.size) else { return nil }
        // PNG, JPEG, GIF and WebP.
        let beginnings: [[UInt8]] = [
            [0x89, 0x50, 0x4E, 0x47], [0xFF, 0xD8, 0xFF], Array("GIF8".utf8), Array("RIFF".utf8),
        ]
        guard beginnings.contains(where: { image.starts(with: $0) }) else {
            throw ConformanceFailure("the thumbnail of '\(path)' is no image of a common format (JPEG, PNG)")
        }
        return image
    }

    private static var size: ThumbnailSize { ThumbnailSize(width: 256, height: 256) }

    /// PNG files of 8 by 8 pixels.
    private static var redPicture: [UInt8] {
        picture("iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mP4z8CAFTEMLQkAKP8/wc53yE8AAAAASUVORK5CYII=")
    }
    private static var bluePicture: [UInt8] {
        picture("iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEElEQVR42mNgYPiPAw0pCQCpcD/B/MtF/AAAAABJRU5ErkJggg==")
    }

    private static func picture(_ base64: String) -> [UInt8] { Array(Data(base64Encoded: base64) ?? Data()) }
}
