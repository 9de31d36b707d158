import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import SystemPackage
import Testing

@testable import Sync

extension EngineTests {
    /// Fetches from a remote that names the version only after the bytes, again and again while more come.
    @Suite struct InterruptedFetchTests {
        private static let piece: Int64 = 256 << 10
        private static let broken = FileProviderError.posix(.ioError, "500")
        private static let size: Int64 = 3 << 20

        /// - Returns: a remote that confirms two pieces at a time.
        private static func options(canFetchRanges: Bool = true) -> InMemoryProvider.Options {
            var options = InMemoryProvider.Options()
            options.partialContentFetching = canFetchRanges
            options.chunkSize = piece
            options.confirmationInterval = 2 * piece
            return options
        }

        @Test("READ-1: a large file comes over a connection that breaks again and again")
        func breakingConnection() async throws {
            let size: Int64 = 20 << 20
            let content = RemoteContent.pattern(size: size, seed: 7)
            try await EngineFixture.run(
                options: Self.options(), fill: { $0.addFile("f", content: content, identifier: "f") }, listing: "/"
            ) { fixture async throws in
                fixture.provider.faults.add(.failTransfer(after: 3 * Self.piece, Self.broken), to: .fetch)
                var bytes: [UInt8] = []
                var tries: Int64 = 0
                while bytes.isEmpty, tries < 100 {
                    tries += 1
                    do { bytes = try await fixture.read("f") } catch is FileProviderError {}
                }
                #expect(bytes == content[0..<size])
                // Each one keeps two pieces at least.
                #expect(tries <= size / (2 * Self.piece))
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
            }
        }

        @Test(
            "READ-1: the confirmed bytes of an interrupted fetch are kept, and no others",
            arguments: [1 << 20, 3 << 20] as [Int64], [true, false])
        func confirmedBytes(size: Int64, canFetchRanges: Bool) async throws {
            let content = RemoteContent.pattern(size: size, seed: 7)
            try await EngineFixture.run(
                options: Self.options(canFetchRanges: canFetchRanges),
                fill: { $0.addFile("f", content: content, identifier: "f") }, listing: "/"
            ) { fixture async throws in
                let number = try fixture.number("f")
                // What comes whole is written again by the next fetch.
                let isKept = canFetchRanges && size > FetchPlan.smallFile
                fixture.provider.faults.add(
                    .failTransfer(after: 3 * Self.piece, Self.broken), to: .fetch, times: 1)
                #expect((await failure { _ = try await fixture.read("f") }) != nil)
                #expect(
                    try await eventually {
                        guard isKept else { return try fixture.inode("f").content == .dataless }
                        return try fixture.replica.database.presentRanges(of: number).ranges == [0..<2 * Self.piece]
                    })
                #expect(try await fixture.read("f") == content[0..<size])
                let last = fixture.provider.log.calls(of: .fetch).last
                #expect(last?.range?.lowerBound ?? 0 == (isKept ? 2 * Self.piece : 0))
            }
        }

        @Test(
            "READ-1: bytes that an interrupted fetch has left are not mixed with those of a newer version",
            arguments: [true, false])
        func changedVersion(changesDuringTheFetch: Bool) async throws {
            let old = RemoteContent.pattern(size: Self.size, seed: 1)
            let new = RemoteContent.pattern(size: Self.size, seed: 2)
            try await EngineFixture.run(
                options: Self.options(), fill: { $0.addFile("f", content: old, identifier: "f") }, listing: "/"
            ) { fixture async throws in
                let opened = try fixture.inode("f")
                if changesDuringTheFetch {
                    let gate = Gate()
                    fixture.provider.faults.add(.holdTransfer(after: 3 * Self.piece, gate), to: .fetch, times: 1)
                    let reader = Task { await failure { _ = try await fixture.read("f") } }
                    #expect(await eventually { gate.waiting == 1 })
                    fixture.provider.change { $0.write(new, to: "f") }
                    gate.open()
                    #expect(await reader.value != nil)
                } else {
                    fixture.provider.faults.add(
                        .failTransfer(after: 3 * Self.piece, Self.broken), to: .fetch, times: 1)
                    #expect((await failure { _ = try await fixture.read("f") }) != nil)
                    fixture.provider.change { $0.write(new, to: "f") }
                    let failure = await failure {
                        _ = try await fixture.read(opened.number, version: opened.contentVersion, 0..<Self.size)
                    }
                    #expect(failure?.code == .versionNoLongerAvailable)
                }
                #expect(try await eventually { try fixture.inode("f").contentVersion != opened.contentVersion })
                #expect(try await fixture.read("f") == new[0..<Self.size])
            }
        }
    }
}

@Suite struct DownloadStateTests {
    @Test("READ-1: what a repeated call writes over confirmed bytes is uncertain again")
    func repeatedCall() {
        var fetch = DownloadState.Fetch(range: 0..<100, urgency: CallUrgency(true))
        fetch.take(0..<60)
        fetch.confirm(0..<40)
        fetch.take(10..<20)
        var state = DownloadState(present: ByteRanges([0..<60]), trusted: ByteRanges(), recorded: 0)
        state.settle(fetch, hasFailed: true)
        #expect(state.trusted.ranges == [0..<10, 20..<40])
        #expect(state.present == state.trusted)
        state.settle(fetch, hasFailed: false)
        #expect(state.trusted.ranges == [0..<60])
    }

    @Test("READ-1: bytes are kept that came after the version was known, and no earlier ones")
    func confirmedLater() {
        var fetch = DownloadState.Fetch(range: 0..<100, urgency: CallUrgency(true))
        fetch.take(0..<10)
        fetch.confirm(nil)
        fetch.take(10..<30)
        var state = DownloadState(present: ByteRanges([0..<30]), trusted: ByteRanges(), recorded: 0)
        state.settle(fetch, hasFailed: true)
        #expect(state.trusted.ranges == [10..<30])
    }
}
