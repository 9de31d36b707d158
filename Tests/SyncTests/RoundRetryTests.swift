import FileProvider
import FileProviderTesting
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Rounds of remote changes that fail.
    @Suite struct RoundRetryTests {
        /// Lists the root, starts the engine and takes in the remote's changes.
        private func start(_ fixture: EngineFixture) async throws {
            try await fixture.list()
            fixture.engine.start()
            #expect(await fixture.provider.log.waits(.anchor))
            try await fixture.engine.refresh()
        }

        @Test("ERROR-6: a round that fails with a transient error is repeated without a request")
        func aRoundIsMadeAgain() async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles) { fixture async throws in
                try await start(fixture)
                fixture.provider.log.clear()
                let error = FileProviderError(.providerDomainTemporarilyUnavailable, "status 500")
                fixture.provider.faults.fail(.changes, with: error, times: 4)
                fixture.provider.change { $0.addFile("new", content: RemoteContent("new")) }
                fixture.engine.signal()
                #expect(
                    try await eventually(within: .seconds(20)) { try fixture.names().contains("new") })
                #expect(fixture.provider.log.count(of: .changes) > 4)
            }
        }

        @Test(
            "ERROR-6: a round that fails for another reason is reported, and repeated without a request",
            arguments: [
                FileProviderError.Code.malformedResponse, .cannotSynchronize, .fileReadNoPermission, .userCancelled,
            ])
        func refusedRounds(code: FileProviderError.Code) async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles) { fixture async throws in
                try await start(fixture)
                fixture.provider.faults.fail(.changes, with: FileProviderError(code, "refused"), times: nil)
                fixture.provider.change { $0.addFile("new", content: RemoteContent("new")) }
                fixture.engine.signal()
                #expect(await eventually(within: .seconds(20)) { fixture.hasWarning("cannot be taken in") })
                #expect(fixture.engine.failureOfChanges?.contains("refused") == true)
                fixture.provider.faults.clear()
                #expect(try await eventually(within: .seconds(20)) { try fixture.names().contains("new") })
                #expect(await eventually { fixture.engine.warnings.texts.isEmpty })
            }
        }

        @Test("ERROR-6: polls do not shorten the pause after a round that failed, and go on after one that succeeds")
        func pollsWait() async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles) { fixture async throws in
                try await start(fixture)
                fixture.engine.poll(.every(.milliseconds(10)))
                let error = FileProviderError(.malformedResponse, "refused")
                fixture.provider.faults.fail(.changes, with: error, times: nil)
                #expect(await eventually(within: .seconds(20)) { fixture.hasWarning("cannot be taken in") })
                fixture.provider.log.clear()
                // The first pause takes two seconds, and fifty polls would be due in half of one.
                try await Task.sleep(for: .milliseconds(500))
                let count = fixture.provider.log.count(of: .changes)
                #expect(count < 5, "\(count)")
                fixture.provider.faults.clear()
                try await fixture.engine.refresh()
                fixture.provider.changeSilently { $0.addFile("new", content: RemoteContent("new")) }
                #expect(try await eventually(within: .seconds(20)) { try fixture.names().contains("new") })
            }
        }

        @Test("ERROR-6: news that readers ask for in vain do not change the pause after a round that failed")
        func readersWait() async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles) { fixture async throws in
                try await start(fixture)
                let error = FileProviderError(.malformedResponse, "refused")
                fixture.provider.faults.fail(.changes, with: error, times: nil)
                fixture.engine.signal()
                #expect(await eventually(within: .seconds(20)) { fixture.hasWarning("cannot be taken in") })
                // After so many rounds that failed the next one would come after an hour.
                for _ in 0..<20 { try? await fixture.engine.feed.takeNewsOnly() }
                fixture.provider.faults.clear()
                fixture.provider.changeSilently { $0.addFile("new", content: RemoteContent("new")) }
                #expect(try await eventually(within: .seconds(20)) { try fixture.names().contains("new") })
            }
        }

        @Test("CHANGE-1: news that a reader has asked for lead to no rounds without a pause")
        func readersAskForRounds() async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles) { fixture async throws in
                try await start(fixture)
                let first = fixture.provider.faults.holdAnswer(.changes, times: 1)
                fixture.engine.signal()
                #expect(await eventually { first.waiting == 1 })
                // Signals during a round lead to one more round, which is the last here, whatever was wanted before.
                let last = fixture.provider.faults.holdAnswer(.changes, times: 1)
                fixture.engine.signal()
                // The next round that only a reader asks for comes after twenty times as long, whichever of the two it is counted from.
                try await Task.sleep(for: .milliseconds(300))
                first.open()
                #expect(await eventually { last.waiting == 1 })
                try await Task.sleep(for: .milliseconds(300))
                last.open()
                try await fixture.engine.refresh()
                fixture.provider.changeSilently { $0.expireAnchors() }
                fixture.provider.log.clear()
                try await fixture.engine.feed.takeNewsOnly()
                try await Task.sleep(for: .seconds(1))
                #expect(fixture.provider.log.count(of: .enumerate) == 0)
                #expect(await fixture.provider.log.waits(.enumerate, within: .seconds(60)))
            }
        }

        private func directory(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            tree.addFile("f", in: "d", content: RemoteContent("f"))
        }

        @Test("ERROR-6: a directory that the remote cannot list is compared again alone, and keeps nothing else back")
        func malformedDirectory() async throws {
            try await EngineFixture.run(fill: directory, listing: "d") { fixture async throws in
                fixture.engine.start()
                #expect(await fixture.provider.log.waits(.anchor))
                try await fixture.engine.refresh()
                let error = FileProviderError(.malformedResponse, "no listing")
                fixture.provider.faults.fail(.enumerate, of: "d", with: error, times: nil)
                fixture.provider.change { tree in
                    tree.addFile("later", in: "d", content: RemoteContent("later"))
                    tree.expireAnchors()
                }
                #expect(await eventually(within: .seconds(10)) { fixture.hasWarning("'d' cannot be compared") })
                fixture.provider.change { $0.addFile("new", content: RemoteContent("new")) }
                #expect(try await eventually(within: .seconds(10)) { try fixture.names().contains("new") })
                #expect(fixture.engine.failureOfChanges == nil)
                fixture.provider.log.clear()
                #expect(await fixture.provider.log.waits(.enumerate, "d"))
                #expect(fixture.provider.log.count(of: .enumerate, .rootContainer) == 0)
                #expect(await failure { try await fixture.engine.refresh() }?.code == .malformedResponse)
                fixture.provider.faults.clear()
                try await fixture.engine.refresh()
                #expect(try fixture.names(in: fixture.number("d")).contains("later"))
                #expect(fixture.engine.warnings.texts == [])
            }
        }

        @Test("ERROR-6: a command asks once for a directory that the remote cannot list")
        func malformedDirectoryOfAPolledRemote() async throws {
            try await EngineFixture.run(options: .with(\.changeFeed, false), fill: directory, listing: "d") {
                fixture async throws in
                let error = FileProviderError(.malformedResponse, "no listing")
                fixture.provider.faults.fail(.enumerate, of: "d", with: error, times: nil)
                for _ in 0..<2 {
                    fixture.provider.log.clear()
                    #expect(await failure { try await fixture.engine.refresh() }?.code == .malformedResponse)
                    #expect(fixture.provider.log.count(of: .enumerate, "d") == 1)
                }
                fixture.provider.faults.clear()
                try await fixture.engine.refresh()
                #expect(fixture.engine.warnings.texts == [])
            }
        }
    }
}
