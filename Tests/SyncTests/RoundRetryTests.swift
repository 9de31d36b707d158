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
        private func files(_ tree: inout RemoteTree) {
            for number in 0..<40 {
                tree.addFile("f\(number)", content: RemoteContent("x"), identifier: ItemIdentifier("f\(number)"))
            }
        }

        @Test("ERROR-6: a round that fails with a transient error is repeated without a request")
        func aRoundIsMadeAgain() async throws {
            try await EngineFixture.run(fill: files) { fixture async throws in
                try await fixture.list()
                fixture.engine.start()
                #expect(await fixture.provider.log.waits(.anchor))
                try await fixture.engine.refresh()
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
            try await EngineFixture.run(fill: files) { fixture async throws in
                try await fixture.list()
                fixture.engine.start()
                #expect(await fixture.provider.log.waits(.anchor))
                try await fixture.engine.refresh()
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
    }
}
