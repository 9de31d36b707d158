import FileProvider
import FileProviderTesting
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Files of which nothing has come.
    @Suite struct UnfetchedContentTests {
        @Test("READ-9: a read while the domain is paused leaves the file dataless") func pausedRead() async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles, listing: "/") { fixture async throws in
                fixture.engine.pause(.user)
                fixture.open.insert(try fixture.number("f1"))
                #expect(await failure { _ = try await fixture.read("f1") }?.code == .serverUnreachable)
                #expect(try fixture.inode("f1").content == .dataless)
                fixture.engine.pause(nil)
                #expect(try await fixture.read("f1") == Array("x".utf8))
            }
        }

        @Test("READ-9: a read that is refused leaves a file that is shown as dataless, while it is open as well")
        func refusedRead() async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles, listing: "/") { fixture async throws in
                let number = try fixture.number("f1")
                fixture.open.insert(number)
                fixture.provider.faults.fail(.fetch, with: FileProviderError(.fileReadNoPermission), times: nil)
                #expect(await failure { _ = try await fixture.read("f1") }?.code == .fileReadNoPermission)
                #expect(try fixture.inode("f1").shownContent == .dataless)
                fixture.open.remove(number)
                fixture.engine.inodeWasClosed(number)
                #expect(try await eventually { try fixture.inode("f1").content == .dataless })
            }
        }

        @Test("a read that is interrupted while a missing file is looked up gives no warning")
        func interruptedLookupGivesNoWarning() async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles, listing: "/") { fixture async throws in
                try await fixture.engine.refresh()
                fixture.provider.faults.fail(.fetch, of: "f1", with: FileProviderError(.noSuchItem), times: nil)
                let gate = fixture.provider.faults.hold(.item, of: "f1")
                let reader = Task { try await fixture.read("f1") }
                #expect(await eventually { gate.waiting > 0 })
                reader.cancel()
                _ = await reader.result
                #expect(!fixture.hasWarning("cannot be recorded"))
            }
        }
    }
}
