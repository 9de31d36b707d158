import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// Which images are scaled, and how the program that does it is started. Programs that only note that they were started stand for the
/// real ones.
@Suite("the scaling of images") struct ImageScalerTests {
    private let directory: TemporaryDirectory
    private let image: [UInt8]

    init() throws {
        directory = try TemporaryDirectory()
        // A PNG file of one pixel.
        let text = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
        image = Array(try #require(Data(base64Encoded: text)))
        _ = try directory.makeFile("image", image)
        _ = try directory.makeDirectory("programs")
        try program(ImageScaler.program, "echo $* >>\(directory["plain"].string); cat \(directory["image"].string) >$4")
    }

    /// Makes a program of a line of the shell.
    private func program(_ name: String, _ line: String) throws {
        let file = try directory.makeFile("programs/\(name)", Array("#!/bin/sh\n\(line)\n".utf8))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.string)
    }

    private func scaler() -> ImageScaler {
        ImageScaler(
            directory: directory["scaling"],
            environment: ["PATH": "\(directory["programs"].string):/usr/bin:/bin", "SECRET": "x"])
    }

    /// What a program has noted: a line for each start.
    private func starts(_ name: String) -> [String] {
        let text = (try? String(contentsOfFile: directory[name].string, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    @Test("only JPEG, PNG, WebP and GIF images are decoded, by their first bytes")
    func formats() async throws {
        defer { directory.remove() }
        try program("bwrap", "exit 1")
        let scaler = scaler()
        let others = [
            "<svg xmlns='http://www.w3.org/2000/svg'/>", "BM......", "II*.....", "P6 1 1 255 ...", "RIFF....AVI ", "",
        ]
        for other in others {
            await #expect(throws: ImageScaler.Unreadable.self) { try await scaler.scale(Array(other.utf8), to: [8]) }
        }
        #expect(starts("plain") == [])
        let accepted = [[0xFF, 0xD8, 0xFF, 0xE0], Array("GIF89a".utf8), Array("RIFF....WEBPVP8 ".utf8), image]
        for image in accepted { #expect(try await scaler.scale(image, to: [8, 4]).count == 2) }
        #expect(starts("plain").count == 2 * accepted.count)
    }

    @Test("where bwrap works, images are decoded nowhere else; where it does not, they are decoded without")
    func sandbox() async throws {
        defer { directory.remove() }
        // It writes the image where the sandbox shows it as the output.
        let body = """
            echo $* >>\(directory["sandboxed"].string)
            while [ "$1" != --bind ]; do shift; done
            cat \(directory["image"].string) >$2
            """
        try program("bwrap", body)
        #expect(try await scaler().scale(image, to: [8, 4]).map(\.bytes) == [image, image])
        // The first start is the trial.
        #expect(starts("sandboxed").count == 3)
        for line in starts("sandboxed") {
            #expect(line.hasPrefix("--unshare-all ") && line.contains(" \(ImageScaler.program) -s "), "\(line)")
        }
        #expect(starts("plain") == [])
        try program("bwrap", "echo $* >>\(directory["refused"].string); exit 1")
        #expect(try await scaler().scale(image, to: [8, 4]).map(\.bytes) == [image, image])
        #expect(starts("refused").count == 1)
        #expect(starts("plain").count == 2)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: directory["scaling"].string).isEmpty)
    }
}
