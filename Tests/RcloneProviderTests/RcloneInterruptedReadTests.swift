import FileProvider
import FileProviderPaths
import FileProviderTesting
import Synchronization
import TestSupport
import Testing

@testable import RcloneProvider

@Suite(.tags(.server), .enabled(if: RcloneFolder.isInstalled)) struct RcloneInterruptedReadTests {
    @Test("READ-1: what has come from rclone is confirmed while more comes", .timeLimit(.minutes(2)))
    func confirmed() async throws {
        // About twelve seconds for the file.
        try await RcloneFolder.withRemote(program: "exec \"$RCLONE\" \"$@\" --bwlimit 512k") { folder, remote in
            let bytes = (0..<6 << 20).map { UInt8(truncatingIfNeeded: $0 >> 8) }
            try await folder.write(bytes, to: "file")
            let path = RemotePath(["file"])
            let entry = try await remote.entry(at: path)
            let sink = CollectingSink()
            let reading = Task { try await remote.read(path, tag: entry.tag, range: nil, into: sink) }
            #expect(await eventually(within: .seconds(30)) { !sink.confirmed.isEmpty })
            reading.cancel()
            _ = await reading.result
            let end = try #require(sink.confirmed.ranges.first?.upperBound)
            #expect(sink.confirmed.ranges == [0..<end])
            #expect(try sink.bytes(in: 0..<end) == Array(bytes[..<Int(end)]))
        }
    }
}

@Suite struct RcloneConfirmationTests {
    private final class Lookups: Sendable {
        private let number = Atomic<Int>(0)

        var count: Int { number.load(ordering: .relaxed) }
        func add() { number.add(1, ordering: .relaxed) }
    }

    @Test(
        "READ-1: the same bytes are looked up once, so that a download that is stuck is noticed",
        arguments: [true, false])
    func once(isPresent: Bool) async throws {
        let (content, lookups) = (CollectingSink(), Lookups())
        let sink = ResumedSink(content, from: 2)
        let confirming = Task {
            await RcloneRemote.confirmVersion(of: sink, from: 2, every: .milliseconds(1)) {
                lookups.add()
                return isPresent
            }
        }
        for number in 1...2 {
            let start = Int64(3 * number - 1)
            try sink.write([1, 2, 3], at: start)
            #expect(await eventually { lookups.count == number })
            try await Task.sleep(for: .milliseconds(50))
            #expect(lookups.count == number)
            #expect(content.confirmed.ranges == (isPresent ? [2..<start + 3] : []))
        }
        confirming.cancel()
        await confirming.value
    }
}
