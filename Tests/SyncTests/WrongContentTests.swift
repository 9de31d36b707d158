import FileProvider
import FileProviderTesting
import SystemPackage
import TestSupport
import Testing

@testable import Replica
@testable import Sync

extension EngineTests {
    /// Content that is not what it should be.
    @Suite struct WrongContentTests {
        private static let text = String(repeating: "0123456789", count: 10)

        private func fill(_ tree: inout RemoteTree) {
            tree.addFile("f", content: RemoteContent(Self.text), identifier: "f")
        }

        @Test func tooFewBytesAreAnError() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                fixture.provider.faults.add(.cutFetch(10), to: .fetch, times: 1)
                let failure = await failure { _ = try await fixture.read("f") }
                #expect(failure?.code == .malformedResponse)
                #expect(failure?.readerErrno == .ioError)
                #expect(fixture.hasWarning("too few bytes for 'f'"))
                #expect(try fixture.inode("f").content != .materialized)
                #expect(try fixture.replica.database.failure(of: fixture.number("f"))?.code == "malformedResponse")
                #expect(try await fixture.read("f") == Array(Self.text.utf8))
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
                #expect(try fixture.replica.database.failure(of: fixture.number("f")) == nil)
            }
        }

        @Test func tooManyBytesAreAnError() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                fixture.provider.faults.add(.surplus(5), to: .fetch, times: 1)
                let failure = await failure { _ = try await fixture.read("f") }
                #expect(failure?.code == .malformedResponse)
                #expect(fixture.hasWarning("bytes 100 to 105 of 'f', which has 100"))
                #expect(try await eventually { try fixture.inode("f").content == .dataless })
                #expect(try await fixture.read("f") == Array(Self.text.utf8))
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
                #expect(await eventually { !fixture.hasWarning("of 'f', which has 100") })
            }
        }

        @Test func tooManyBytesAreReportedWithoutAWaitingReader() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                fixture.provider.faults.add(.surplus(5), to: .fetch, times: 1)
                // As long as he has it open, who reads keeps the content file that he reads from.
                let number = try fixture.number("f")
                fixture.open.insert(number)
                _ = try await fixture.read("f", 0..<10)
                #expect(await eventually { fixture.hasWarning("of 'f', which has 100") })
                fixture.open.remove(number)
                fixture.engine.inodeWasClosed(number)
                #expect(try await eventually { try fixture.inode("f").content == .dataless })
            }
        }

        @Test func readDuringCleanupOfFailedTransferSucceeds() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                for _ in 0..<20 {
                    fixture.provider.faults.add(.surplus(1), to: .fetch, times: 1)
                    _ = await failure { _ = try await fixture.read("f") }
                    let bytes = try await fixture.read("f")
                    #expect(bytes == Array(Self.text.utf8))
                    #expect(try await eventually { try fixture.inode("f").content == .materialized })
                    _ = try await fixture.engine.evict(fixture.number("f"), isStrict: true)
                }
            }
        }

        @Test("READ-1: a file that could not be read can be read again at once, also after its state was asked for")
        func askingBetweenReads() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                fixture.provider.faults.add(.fail(FileProviderError.posix(.ioError, "500")), to: .fetch, times: 1)
                #expect((await failure { _ = try await fixture.read("f") }) != nil)
                await fixture.engine.settleIdleDownloads()
                #expect(try await fixture.read("f") == Array(Self.text.utf8))
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
            }
        }

        @Test(
            "READ-1: bytes of an interrupted fetch are kept only if their version was certain when they came",
            arguments: [true, false], [true, false])
        func interruptedFetch(isConfirmed: Bool, isCancelled: Bool) async throws {
            let content = RemoteContent.pattern(size: 3 << 20, seed: 7)
            try await EngineFixture.run(
                options: .with(\.confirmsVersions, isConfirmed),
                fill: { $0.addFile("f", content: content, identifier: "f") }, listing: "/"
            ) { fixture async throws in
                let number = try fixture.number("f")
                if isCancelled {
                    let gate = Gate()
                    fixture.provider.faults.add(.holdTransfer(after: 65_536, gate), to: .fetch, times: 1)
                    let reader = Task { await failure { _ = try await fixture.read("f") } }
                    #expect(await eventually { gate.waiting == 1 })
                    reader.cancel()
                    #expect(await reader.value?.code == .userCancelled)
                } else {
                    fixture.provider.faults.add(
                        .failTransfer(after: 65_536, FileProviderError.posix(.ioError, "500")), to: .fetch, times: 1)
                    #expect((await failure { _ = try await fixture.read("f") }) != nil)
                }
                #expect(
                    try await eventually {
                        guard isConfirmed else { return try fixture.inode("f").content == .dataless }
                        return try fixture.replica.database.presentRanges(of: number).ranges == [0..<65_536]
                    })
                #expect(try fixture.replica.database.presentRanges(of: number).isEmpty == !isConfirmed)
                #expect(try await fixture.read("f") == content[0..<3 << 20])
                let last = fixture.provider.log.calls(of: .fetch).last
                #expect(last?.range?.lowerBound ?? 0 == (isConfirmed ? 65_536 : 0))
            }
        }

        @Test("READ-1: a read right after an interrupted fetch gets no byte of that fetch")
        func interruptedAtTheEnd() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                // All bytes have come, and the version is not certain yet.
                let gate = Gate()
                fixture.provider.faults.add(.holdTransfer(after: 100, gate), to: .fetch, times: 1)
                let reader = Task { await failure { _ = try await fixture.read("f") } }
                #expect(await eventually { gate.waiting == 1 })
                reader.cancel()
                #expect(await reader.value?.code == .userCancelled)
                #expect(try await fixture.read("f") == Array(Self.text.utf8))
                #expect(fixture.provider.log.count(of: .fetch) == 2)
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
            }
        }

        @Test func bytesOfAnotherVersionAreNotKept() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                fixture.provider.faults.add(.contentVersion(Array("other".utf8)), to: .fetch, times: 1)
                let failure = await failure { _ = try await fixture.read("f") }
                #expect(failure?.code == .versionNoLongerAvailable)
                #expect(try fixture.inode("f").content != .materialized)
                #expect(await eventually { (try? await fixture.read("f")) == Array(Self.text.utf8) })
            }
        }

        @Test func aDownloadIsDoneOnlyOnceItsVersionIsKnown() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                fixture.provider.faults.add(.contentVersion(Array("other".utf8)), to: .fetch, times: 1)
                let failures = try await fixture.engine.download(
                    fixture.number("f"), request: fixture.request, progress: { _, _ in })
                #expect(failures.map(\.error.code) == [.versionNoLongerAvailable])
                #expect(try fixture.inode("f").content != .materialized)
            }
        }

        @Test func theRemoteMovesOnInTheMiddle() async throws {
            let old = RemoteContent.pattern(size: 8 << 20, seed: 1)
            let new = RemoteContent.pattern(size: 6 << 20, seed: 2)
            try await EngineFixture.run(fill: { $0.addFile("f", content: old, identifier: "f") }, listing: "/") {
                fixture in
                let opened = try fixture.inode("f")
                #expect(try await fixture.read("f", 0..<100) == old[0..<100])
                fixture.provider.change { $0.write(new, to: "f") }
                let failure = await failure {
                    _ = try await fixture.read(opened.number, version: opened.contentVersion, 5 << 20..<6 << 20)
                }
                #expect(failure?.code == .versionNoLongerAvailable)
                #expect(failure?.readerErrno == .staleNFSFileHandle)
                #expect(try await eventually { try fixture.inode("f").contentVersion != opened.contentVersion })
                #expect(try fixture.inode("f").size == 6 << 20)
                #expect(try await fixture.read("f") == new[0..<6 << 20])
            }
        }

        @Test("OPEN-1: a first read of the new version does not fail because the old one is being fetched")
        func newVersionDuringATransfer() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                let opened = try fixture.inode("f")
                let gate = Gate()
                fixture.provider.faults.add(.holdTransfer(after: 10, gate), to: .fetch, times: 1)
                let first = Task { await failure { _ = try await fixture.read("f") } }
                #expect(await eventually { gate.waiting == 1 })
                fixture.provider.change { $0.write(RemoteContent("new"), to: "f") }
                try await fixture.engine.refresh()
                #expect(try fixture.number("f") == opened.number)
                #expect(try fixture.inode("f").contentVersion != opened.contentVersion)
                #expect(try await fixture.read("f") == Array("new".utf8))
                gate.open()
                _ = await first.value
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
                #expect(try await fixture.read("f") == Array("new".utf8))
            }
        }

        @Test("OPEN-1: a read does not fail because a new date has made another version during a transfer")
        func newDateDuringATransfer() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                let number = try fixture.number("f")
                let gate = Gate()
                fixture.provider.faults.add(.holdTransfer(after: 10, gate), to: .fetch, times: 1)
                let download = Task {
                    await failure {
                        try await fixture.engine.downloads.provide(
                            number, version: nil, range: nil, request: FileProviderRequest(reason: .lookAhead))
                    }
                }
                #expect(await eventually { gate.waiting == 1 })
                let version: [UInt8] = fixture.provider.changeSilently { tree in
                    tree.write(RemoteContent(Self.text), to: "f")
                    return tree["f"]?.itemVersion.contentVersion ?? []
                }
                // As the answer to the date: the content that is here is of the new version.
                try await fixture.replica.database.write { db in try db.setContentVersion(of: number, to: version) }
                #expect(try await fixture.read("f") == Array(Self.text.utf8))
                gate.open()
                #expect(await download.value?.code == .userCancelled)
                #expect(try await eventually { try fixture.inode("f").content == .materialized })
                #expect(try fixture.inode("f").contentVersion == version)
            }
        }

        @Test("READ-1: what a transfer has brought of a file that was evicted while it began is fetched again")
        func evictedWhileATransferBegan() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                let gate = Gate()
                fixture.provider.faults.add(.holdTransfer(after: 10, gate), to: .fetch, times: 1)
                let first = Task { await failure { _ = try await fixture.read("f") } }
                #expect(await eventually { gate.waiting == 1 })
                // As an eviction whose transaction comes right after that of the transfer.
                _ = try await fixture.replica.evictFile(try fixture.number("f"), open: fixture.open)
                #expect(try await fixture.read("f", 0..<10) == Array(Self.text.utf8.prefix(10)))
                gate.open()
                _ = await first.value
                #expect(try await fixture.read("f") == Array(Self.text.utf8))
            }
        }

        @Test func openFileKeepsLocalContentOfOldVersion() async throws {
            let old = RemoteContent.pattern(size: 8 << 20, seed: 1)
            try await EngineFixture.run(fill: { $0.addFile("f", content: old, identifier: "f") }, listing: "/") {
                fixture in
                let opened = try fixture.inode("f")
                fixture.open.insert(opened.number)
                _ = try await fixture.read("f", 0..<100)
                #expect(try await eventually { try fixture.inode("f").localBytes > 0 })
                fixture.provider.change { $0.write(RemoteContent("new"), to: "f") }
                try await fixture.engine.refresh()
                #expect(
                    try await fixture.read(opened.number, version: opened.contentVersion, 0..<100) == old[0..<100])
                let failure = await failure {
                    _ = try await fixture.read(opened.number, version: opened.contentVersion, 5 << 20..<6 << 20)
                }
                #expect(failure?.code == .versionNoLongerAvailable)
                #expect(try await fixture.read("f") == Array("new".utf8))
                #expect(try fixture.number("f") != opened.number)
                fixture.open.remove(opened.number)
                fixture.engine.inodeWasClosed(opened.number)
                #expect(try await eventually { try fixture.replica.database.inode(opened.number) == nil })
            }
        }
    }
}
