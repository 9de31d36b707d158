import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ProgramProvider

/// What is shown of uploads to programs, and that they are given up.
@Suite(.tags(.server)) struct ProgramProgressTests {
    private static let size = 1 << 20

    init() { BrokenPipes.areIgnored }

    /// Has a program write a file.
    ///
    /// - Parameter fault: what the program tells, see `folder.py`.
    /// - Returns: the steps in which bytes counted as sent.
    private func steps(_ fault: String) async throws -> [Int64] {
        let served = try ServedByProgram(fault: fault)
        let remote = try await served.remote()
        let steps = SentSteps()
        try await withCleanUp({
            await remote.close()
            await served.dispose()
        }) {
            let contents = try steps.contents([UInt8](repeating: 7, count: Self.size), in: served.scratch)
            let made = try await remote.write(
                contents, to: RemotePath(["file"]), attributes: RemoteAttributes(), if: .absent)
            #expect(made.size == Int64(Self.size))
            // The program is still the one that was started.
            #expect(try await remote.entry(at: RemotePath(["file"])).size == Int64(Self.size))
        }
        return steps.all
    }

    @Test("PROGRAM-10: what is shown as sent is what the program says that it has sent") func sent() async throws {
        let quarter = Int64(Self.size / 4)
        #expect(try await steps("tells-sent") == [quarter, quarter, 2 * quarter])
    }

    @Test("PROGRAM-10: no number of a program counts more than the file, or less than what was sent before")
    func lies() async throws {
        #expect(try await steps("lies-about-sent") == [3, Int64(Self.size) - 3])
    }

    @Test("PROGRAM-10: of a program that has not announced it, a file counts as sent when the program has got it")
    func notAnnounced() async throws {
        for fault in ["not-announced", "none"] {
            #expect(try await steps(fault) == [Int64(Self.size)], "\(fault)")
        }
    }

    @Test("an upload that is not wanted any more is not copied on") func cancelled() async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let files = TransferFiles(in: try scratch.makeDirectory("transfer"))
        let copied = SentSteps(pause: 0.02)
        let contents = try copied.contents([UInt8](repeating: 7, count: 64 << 20), in: scratch)
        let upload = Task { try await files.withCopy(of: contents) { _ in Issue.record("it was copied") } }
        #expect(await eventually { !copied.all.isEmpty })
        upload.cancel()
        await #expect(throws: CancellationError.self) { try await upload.value }
        #expect(copied.all.reduce(0, +) < contents.size)
        #expect(try FileManager.default.contentsOfDirectory(atPath: files.directory.string) == [])
    }
}

/// The steps in which bytes of an upload counted as sent.
final class SentSteps: Sendable {
    private let steps = Mutex<[Int64]>([])
    private let pause: TimeInterval
    var all: [Int64] { steps.withLock { $0 } }

    /// - Parameter pause: in seconds, after each step.
    init(pause: TimeInterval = 0) {
        self.pause = pause
    }

    func contents(_ bytes: [UInt8], in directory: TemporaryDirectory) throws -> ContentSource {
        let file = try directory.makeFile("content", bytes)
        return ContentSource(
            descriptor: try FileDescriptor.open(file, .readOnly, options: .closeOnExec), size: Int64(bytes.count),
            progress: { [self] count in
                steps.withLock { if count > 0 { $0.append(count) } }
                Thread.sleep(forTimeInterval: pause)
            })
    }
}
