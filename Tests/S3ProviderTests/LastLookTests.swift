import FileProviderPaths
import FileProviderTesting
import HTTPTransport
import Synchronization
import TestSupport
import Testing

@testable import S3Provider

@Suite(.tags(.server)) struct LastLookTests {
    @Test("S3-5: where conditions are not checked, it is looked again before the last bytes go")
    func looksBeforeTheLastPiece() async throws {
        let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        try await withContent(content) { source in
            let looks = Mutex(0)
            let whole = LastLook(source) { looks.withLock { $0 += 1 } }
            var given: [UInt8] = []
            while let piece = try await whole.next() {
                #expect(looks.withLock { $0 } == (given.count + piece.count == content.count ? 1 : 0))
                given += piece
            }
            #expect(given == content)

            let broken = LastLook(source) { throw RemoteConditionFailure(present: nil) }
            var count = 0
            await #expect(throws: RemoteConditionFailure.self) {
                while let piece = try await broken.next() { count += piece.count }
            }
            #expect(count > 0 && count < content.count)
        }
    }

    @Test("S3-5: what is larger is written so, and over nothing that is newer")
    func largerContentIsWritten() async throws {
        try await withBucket(settings: .init(largestUnwatched: 1000)) { bucket, remote in
            let path = RemotePath("file")
            let content = [UInt8](repeating: 7, count: 300_000)
            try await withContent(content) { source in
                let first = try await remote.write(source, to: path, attributes: RemoteAttributes(), if: .absent)
                #expect(first.size == 300_000)
                try await bucket.put(bucket.prefix + "file", "theirs")
                await #expect(throws: RemoteConditionFailure.self) {
                    try await remote.write(
                        source, to: path, attributes: RemoteAttributes(), if: .unchanged(tag: first.tag))
                }
            }
            #expect(try await bucket.get(bucket.prefix + "file").text == "theirs")
        }
    }
}
