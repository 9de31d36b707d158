import Foundation
import InMemoryLogging
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// Which images are scaled, and how the program that does it is started.
@Suite("the scaling of images") struct ImageScalerTests {
    private let played: PlayedScaler

    init() throws { played = try PlayedScaler() }

    @Test("only JPEG, PNG, WebP and GIF images are decoded, by their first bytes")
    func formats() async throws {
        defer { played.remove() }
        let scaler = played.scaler()
        let others = [
            "<svg xmlns='http://www.w3.org/2000/svg'/>", "BM......", "II*.....", "P6 1 1 255 ...", "RIFF....AVI ", "",
        ]
        for other in others {
            await #expect(throws: ImageScaler.Unreadable.self) { try await scaler.scale(Array(other.utf8), to: [8]) }
        }
        #expect(played.starts() == [])
        let accepted: [[UInt8]] = [
            [0xFF, 0xD8, 0xFF, 0xE0], Array("GIF89a".utf8), Array("RIFF....WEBPVP8 ".utf8), played.image,
        ]
        for image in accepted { #expect(try await scaler.scale(image, to: [8, 4]).count == 2) }
        #expect(played.starts().count == 2 * accepted.count)
    }

    @Test("where bwrap works, images are decoded nowhere else; where it does not, they are decoded without")
    func sandbox() async throws {
        defer { played.remove() }
        // It writes the image where the sandbox shows it as the output.
        let body = """
            echo $* >>\(played.directory["sandboxed"].string)
            while [ "$1" != --bind ]; do shift; done
            cat \(played.directory["image"].string) >$2
            """
        try played.program("bwrap", body)
        #expect(
            try await played.scaler().scale(played.image, to: [8, 4]).map(\.bytes) == [played.image, played.image])
        // The first start is the trial.
        #expect(played.starts("sandboxed").count == 3)
        for line in played.starts("sandboxed") {
            #expect(line.hasPrefix("--unshare-all ") && line.contains(" \(ImageScaler.program) -s "), "\(line)")
        }
        #expect(played.starts() == [])
        try played.program("bwrap", "echo $* >>\(played.directory["refused"].string); exit 1")
        #expect(
            try await played.scaler().scale(played.image, to: [8, 4]).map(\.bytes) == [played.image, played.image])
        #expect(played.starts("refused").count == 1)
        #expect(played.starts().count == 2)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: played.directory["scaling"].string).isEmpty)
    }

    @Test("a sandbox that fails once is tried again after a pause, and the log says why it was not used")
    func sandboxFailsOnce() async throws {
        defer { played.remove() }
        let failed = played.directory["failed"].string
        let body = """
            if [ ! -e \(failed) ]; then touch \(failed); echo no namespaces >&2; exit 1; fi
            echo $* >>\(played.directory["sandboxed"].string)
            while [ "$1" != --bind ]; do shift; done
            cat \(played.directory["image"].string) >$2
            """
        try played.program("bwrap", body)
        let log = InMemoryLogHandler()
        let scaler = played.scaler(pauseAfterTrial: .zero, logger: Logger(label: "test", factory: { _ in log }))
        _ = try await scaler.scale(played.image, to: [8])
        #expect(played.starts().count == 1)
        #expect(log.entries.contains { $0.level == .notice && "\($0.message)".contains("no namespaces") })
        for _ in 0..<2 { _ = try await scaler.scale(played.image, to: [8]) }
        #expect(played.starts().count == 1)
        // One more is the trial.
        #expect(played.starts("sandboxed").count == 3)
        // Within the pause it is not tried again.
        try played.program("bwrap", "echo $* >>\(played.directory["refused"].string); exit 1")
        let patient = played.scaler()
        for _ in 0..<2 { _ = try await patient.scale(played.image, to: [8]) }
        #expect(played.starts("refused").count == 1)
    }

    @Test("a trial of the sandbox that is killed is no error of the image") func killedTrial() async throws {
        defer { played.remove() }
        try played.program("bwrap", "kill -9 $$")
        let scaler = played.scaler()
        await #expect(throws: ImageScaler.TrialFailure.self) { try await scaler.scale(played.image, to: [8]) }
        #expect(played.starts() == [])
    }
}
