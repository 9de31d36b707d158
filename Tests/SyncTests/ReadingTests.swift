import FileProvider
import FileProviderTesting
import Replica
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// How content comes here.
    @Suite struct ReadingTests {
        private let mebibyte: Int64 = 1 << 20

        @Test func tenReadersMakeOneTransfer() async throws {
            try await EngineFixture.run(fill: {
                $0.addFile("f", content: .pattern(size: 500_000, seed: 1), identifier: "f")
            }
            ) { fixture in
                try await fixture.list()
                let gate = fixture.provider.faults.hold(.fetch)
                try await withThrowingTaskGroup(of: [UInt8].self) { group in
                    for _ in 0..<10 { group.addTask { try await fixture.read("f") } }
                    #expect(await fixture.provider.log.waits(.fetch))
                    gate.open()
                    let expected = RemoteContent.pattern(size: 500_000, seed: 1)[0..<500_000]
                    for try await bytes in group { #expect(bytes == expected) }
                }
                #expect(fixture.provider.log.count(of: .fetch) == 1)
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
            }
        }

        @Test func theFirstBytesArriveBeforeTheLast() async throws {
            try await EngineFixture.run(
                options: .with(\.chunkSize, 65_536),
                fill: { $0.addFile("f", content: .pattern(size: 500_000, seed: 2), identifier: "f") }
            ) { fixture in
                try await fixture.list()
                let gate = Gate()
                fixture.provider.faults.add(.holdTransfer(after: 65_536, gate), to: .fetch)
                let first = try await fixture.read("f", 0..<4096)
                #expect(first == RemoteContent.pattern(size: 500_000, seed: 2)[0..<4096])
                #expect(try fixture.inode("f").content != .materialized)
                #expect(fixture.provider.log.calls(of: .fetch).map(\.isRunning) == [true])
                gate.open()
                #expect(try await fixture.read("f").count == 500_000)
            }
        }

        @Test("LIMIT-1: a file whose bytes have just arrived has content, although nothing is recorded yet")
        func unrecordedBytesAreContent() async throws {
            try await EngineFixture.run(
                options: .with(\.chunkSize, 65_536),
                fill: { $0.addFile("f", content: .pattern(size: 500_000, seed: 2), identifier: "f") }, listing: "/"
            ) { fixture in
                let number = try fixture.number("f")
                #expect(try await !fixture.engine.hasContent(number))
                let gate = Gate()
                fixture.provider.faults.add(.holdTransfer(after: 65_536, gate), to: .fetch)
                _ = try await fixture.read("f", 0..<4096)
                #expect(try fixture.inode("f").shownContent == .dataless)
                #expect(try await fixture.engine.hasContent(number))
                gate.open()
            }
        }

        @Test func partOfAHugeFileMovesLittle() async throws {
            let size: Int64 = 5 << 30
            try await EngineFixture.run(fill: {
                $0.addFile("f", content: .pattern(size: size, seed: 3), identifier: "f")
            }) {
                fixture in
                try await fixture.list()
                let middle = (1 << 30) + 5 as Int64
                #expect(
                    try await fixture.read("f", middle..<middle + 4096)
                        == RemoteContent.pattern(size: size, seed: 3)[middle..<middle + 4096])
                #expect(
                    try await fixture.read("f", size - 10..<size)
                        == RemoteContent.pattern(size: size, seed: 3)[size - 10..<size])
                let ranges = fixture.provider.log.calls(of: .fetch).compactMap(\.range)
                #expect(ranges.count == 2)
                #expect(ranges.reduce(0) { $0 + $1.count } <= 2 * Int(FetchPlan.randomWindow))
                #expect(try await eventually { try fixture.inode("f").localBytes > 0 })
                #expect(try fixture.inode("f").content == .partial)
            }
        }

        @Test func presentRangesAreNotFetchedAgain() async throws {
            try await EngineFixture.run(fill: {
                $0.addFile("f", content: .pattern(size: 3 << 20, seed: 4), identifier: "f")
            }
            ) { fixture in
                try await fixture.list()
                _ = try await fixture.read("f", 0..<1000)
                #expect(try await eventually { try fixture.inode("f").localBytes > 0 })
                let before = fixture.provider.log.count(of: .fetch)
                _ = try await fixture.read("f", 0..<1000)
                #expect(fixture.provider.log.count(of: .fetch) == before)
                #expect(
                    try await fixture.read("f") == RemoteContent.pattern(size: 3 << 20, seed: 4)[0..<3 << 20])
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
            }
        }

        @Test("READ-11: what has come of a large file is recorded while more comes")
        func muchIsRecordedMeanwhile() async throws {
            let size: Int64 = 48 << 20
            try await EngineFixture.run(fill: {
                $0.addFile("f", content: .pattern(size: size, seed: 6), identifier: "f")
            }
            ) { fixture in
                try await fixture.list()
                let gate = fixture.provider.faults.hold(.fetch, skipping: 2)
                let reader = Task { try await fixture.read("f", 0..<size) }
                #expect(try await eventually { try fixture.inode("f").localBytes == 32 << 20 })
                #expect(try fixture.inode("f").content == .partial)
                #expect(await eventually { fixture.provider.log.calls(of: .fetch).filter(\.isRunning).count == 1 })
                reader.cancel()
                _ = try? await reader.value
                gate.open()
            }
        }

        @Test func withoutRangesEverythingComesInOneFetch() async throws {
            try await EngineFixture.run(
                options: .with(\.partialContentFetching, false),
                fill: { $0.addFile("f", content: .pattern(size: 3 << 20, seed: 5), identifier: "f") }
            ) { fixture in
                try await fixture.list()
                _ = try await fixture.read("f", (2 << 20)..<(2 << 20) + 10)
                #expect(try await fixture.read("f").count == 3 << 20)
                #expect(fixture.provider.log.calls(of: .fetch).map(\.range) == [nil])
            }
        }

        @Test(arguments: [true, false])
        func theLastReadersLeavingCancelsTheTransfer(heedsCancellation: Bool) async throws {
            try await EngineFixture.run(fill: { $0.addFile("f", content: RemoteContent("hello"), identifier: "f") }) {
                fixture in
                try await fixture.list()
                let gate = fixture.provider.faults.hold(.fetch, times: 1, heedsCancellation: heedsCancellation)
                let reader = Task { await failure { _ = try await fixture.read("f") } }
                #expect(await fixture.provider.log.waits(.fetch))
                let start = ContinuousClock.now
                reader.cancel()
                #expect(await reader.value?.code == .userCancelled)
                #expect(ContinuousClock.now - start < .seconds(5))
                // The reader does not wait until the call hears of it.
                #expect(await eventually { gate.cancellations > 0 })
                gate.open()
                #expect(await eventually { fixture.provider.log.calls(of: .fetch).first?.wasCancelled == true })
                #expect(try await fixture.read("f") == Array("hello".utf8))
            }
        }

        @Test func remainingReaderGetsTheFile() async throws {
            try await EngineFixture.run(fill: { $0.addFile("f", content: RemoteContent("hello"), identifier: "f") }) {
                fixture in
                try await fixture.list()
                let gate = fixture.provider.faults.hold(.fetch)
                let stays = Task { try await fixture.read("f") }
                #expect(await fixture.provider.log.waits(.fetch))
                let leaves = Task { await failure { _ = try await fixture.read("f") } }
                leaves.cancel()
                #expect(await leaves.value?.code == .userCancelled)
                gate.open()
                #expect(try await stays.value == Array("hello".utf8))
                #expect(fixture.provider.log.count(of: .fetch) == 1)
            }
        }

        @Test func aTransferThatDoesNotMoveIsGivenUp() async throws {
            try await EngineFixture.run(
                patience: .seconds(1),
                fill: { $0.addFile("f", content: RemoteContent("hello"), identifier: "f") }
            ) { fixture in
                try await fixture.list()
                _ = fixture.provider.faults.hold(.fetch, times: 1, heedsCancellation: false)
                #expect(await failure { _ = try await fixture.read("f") }?.code == .timedOut)
                #expect(fixture.engine.connection.state == .online)
                #expect(try await fixture.read("f") == Array("hello".utf8))
            }
        }

        @Test(
            "READ-12: bytes that come after their fetch was given up do not overwrite what was written since",
            arguments: [true, false])
        func lateBytesOverwriteNothing(isInterrupted: Bool) async throws {
            try await EngineFixture.run(
                patience: isInterrupted ? .seconds(30) : .seconds(1),
                fill: { $0.addFile("f", content: RemoteContent("hello"), identifier: "f") }
            ) { fixture in
                try await fixture.list()
                // The next fetch goes on in the same content file.
                fixture.open.insert(try fixture.number("f"))
                let gate = Gate()
                fixture.provider.faults.add(.blockFetch(gate), to: .fetch, times: 1)
                let reader = Task { await failure { _ = try await fixture.read("f") } }
                #expect(await eventually { gate.waiting == 1 })
                if isInterrupted { reader.cancel() }
                #expect(await reader.value?.code == (isInterrupted ? .userCancelled : .timedOut))
                #expect(try await fixture.read("f") == Array("hello".utf8))
                #expect(try await eventually { try fixture.inode("f").content == .materialized })

                let file = try fixture.replica.openContentForWriting(of: fixture.number("f"))
                defer { try? file.close() }
                try file.writeAll(Array("local".utf8).span.bytes, at: 0)
                gate.open()
                #expect(await eventually { fixture.provider.log.calls(of: .fetch).first?.isRunning == false })
                #expect(try file.readBytes(at: 0, count: 10) == Array("local".utf8))
            }
        }

        @Test("ERROR-3: a remote that answers neither a call nor for its root is unreachable, until it answers")
        func aRemoteThatHangs() async throws {
            try await EngineFixture.run(
                patience: .seconds(1),
                fill: { $0.addFile("f", content: RemoteContent("hello"), identifier: "f") }
            ) { fixture in
                try await fixture.list()
                let fetch = fixture.provider.faults.hold(.fetch, heedsCancellation: false)
                let root = fixture.provider.faults.hold(.item, heedsCancellation: false)
                #expect(await failure { _ = try await fixture.read("f") }?.code == .serverUnreachable)
                #expect(fixture.engine.connection.state == .offline)
                // Nor does any of those wait that come later, while the remote still hangs.
                let calls = fixture.provider.log.count(of: .fetch)
                try await Task.sleep(for: .seconds(1.1))
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<20 {
                        group.addTask {
                            #expect(
                                await failure { _ = try await fixture.read("f") }?.code == .serverUnreachable)
                        }
                    }
                }
                #expect(fixture.provider.log.count(of: .fetch) == calls)
                fetch.open()
                root.open()
                #expect(await eventually { (try? await fixture.read("f")) == Array("hello".utf8) })
                #expect(fixture.engine.connection.state == .online)
            }
        }

        @Test func aSlowTransferThatMovesIsNotGivenUp() async throws {
            var options = InMemoryProvider.Options()
            options.chunkSize = 10
            // All of them take twice the patience.
            options.chunkDelay = .milliseconds(100)
            try await EngineFixture.run(
                options: options, patience: .seconds(1),
                fill: { $0.addFile("f", content: .pattern(size: 200, seed: 6), identifier: "f") }
            ) { fixture in
                try await fixture.list()
                #expect(try await fixture.read("f").count == 200)
            }
        }
    }
}
