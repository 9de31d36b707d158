import FileProvider
import FileProviderTesting
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Failures of one item that look like failures of the whole remote.
    @Suite struct ItemFailureTests {
        private static let codes: [(FileProviderError.Code, Errno)] = [
            (.serverUnreachable, .noRouteToHost), (.notAuthenticated, .keyRejected),
        ]

        private func hasFailed(_ number: InodeNumber, _ machine: Machine) async throws -> Bool {
            try await eventually(within: .seconds(20)) { try machine.replica.database.failure(of: number) != nil }
        }

        @Test("ERROR-5: a file that cannot be fetched does not take the domain offline", arguments: codes)
        func aFileDoesNotLatch(code: FileProviderError.Code, errno: Errno) async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles, listing: "/") { fixture async throws in
                let error = FileProviderError(code, "not this one")
                fixture.provider.faults.fail(.fetch, of: "f0", with: error, times: nil)
                for number in 1..<40 {
                    let failure = await failure { _ = try await fixture.read("f0") }
                    #expect(failure?.readerErrno == errno)
                    #expect(failure?.message == "not this one")
                    #expect(try await fixture.read(ItemIdentifier("f\(number)")) == Array("x".utf8))
                }
                #expect(fixture.engine.connection.state == .online)
                #expect(try fixture.replica.database.failure(of: fixture.number("f0"))?.message == "not this one")
                fixture.provider.faults.clear()
                #expect(try await fixture.read("f0") == Array("x".utf8))
            }
        }

        @Test(
            "ERROR-9: a change that waits is sent when the provider says that its error is resolved", arguments: codes)
        func aChangeIsSentOnceResolved(code: FileProviderError.Code, errno: Errno) async throws {
            try await Machine.run(isInteractive: false, fill: EngineFixture.fortyFiles) { machine async throws in
                machine.provider.faults.fail(.modify, of: "f0", with: FileProviderError(code), times: nil)
                machine.provider.faults.fail(.modify, of: "f1", with: FileProviderError(.cannotSynchronize), times: nil)
                for name in ["f0", "f1"] { try await machine.write("new", to: name) }
                for name in ["f0", "f1"] { #expect(try await hasFailed(machine.number(name), machine)) }
                machine.provider.faults.clear()
                await machine.engine.errorWasResolved(code)
                #expect(await eventually { machine.provider.tree.entries()["f0"]?.content == "new" })
                // It waits because of another error.
                #expect(machine.provider.tree.entries()["f1"]?.content == "x")
            }
        }

        @Test(
            "ERROR-5: a change that the remote does not take is tried later, and the others are sent", arguments: codes)
        func aChangeDoesNotLatch(code: FileProviderError.Code, errno: Errno) async throws {
            try await Machine.run(isInteractive: false, fill: EngineFixture.fortyFiles) { machine async throws in
                machine.provider.faults.fail(.modify, of: "f0", with: FileProviderError(code, "not now"), times: nil)
                for number in 0..<10 { try await machine.write("new \(number)", to: "f\(number)") }
                let number = try await machine.number("f0")
                _ = try await machine.engine.waitUntilSynced(within: .seconds(2))
                #expect(try await eventually { try machine.replica.database.pendingCounts().items == 1 })
                // The remote is asked for its root before the failure is one of the file.
                #expect(try await hasFailed(number, machine))
                #expect(try machine.replica.database.failure(of: number)?.message == "not now")
                #expect(machine.engine.connection.state == .online)
                // It is not sent again and again.
                #expect(machine.provider.log.calls(of: .modify).count { $0.identifier == "f0" } < 5)
                machine.provider.faults.clear()
                try await machine.engine.retry()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(10)))
                let entries = machine.provider.tree.entries()
                #expect((0..<10).allSatisfy { entries["f\($0)"]?.content == "new \($0)" })
            }
        }

        @Test("ERROR-5: a file of the same name that cannot be read is not compared again and again")
        func unreadableCollision() async throws {
            try await Machine.run(isInteractive: false) { machine async throws in
                #expect(try await machine.names(in: .root) == [])
                machine.provider.changeSilently {
                    _ = $0.addFile("file", content: RemoteContent("them"), identifier: "theirs")
                }
                machine.provider.faults.fail(
                    .fetch, of: "theirs", with: FileProviderError(.noSuchItem, "not known"), times: nil)
                try await machine.write("mine", to: "file")
                _ = try await machine.engine.waitUntilSynced(within: .seconds(2))
                #expect(machine.provider.log.count(of: .fetch) < 5)
                try await machine.engine.retry()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(10)))
                #expect(Set(machine.provider.tree.entries().values.map(\.content)) == ["them", "mine"])
                #expect(!machine.engine.warnings.texts.contains { $0.contains("cannot be recorded") })
            }
        }

        @Test("CONFLICT-4: a file whose new name is its own already, to the remote, is not sent again and again")
        func itsOwnName() async throws {
            try await Machine.run(isInteractive: false, fill: EngineFixture.fortyFiles) { machine async throws in
                let there = try #require(machine.provider.tree["f0"])
                machine.provider.faults.fail(
                    .modify, of: "f0", with: FileProviderError.filenameCollision(with: there), times: nil)
                let number = try await machine.number("f0")
                try await machine.rename("f0", to: "F0")
                try await machine.sendOthers("f1", times: 8)
                #expect(try await hasFailed(number, machine))
                #expect(machine.provider.log.calls(of: .modify).count { $0.identifier == "f0" } < 5)
                let failure = try #require(try machine.replica.database.failure(of: number))
                #expect(failure.message.contains("the name of 'f0' itself"), "\(failure.message)")
                machine.provider.faults.clear()
                try await machine.engine.retry()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(10)))
                #expect(machine.provider.tree["f0"]?.filename == "F0")
            }
        }

        @Test("ERROR-5: the domain goes offline when its root cannot be asked for either", arguments: codes)
        func theRootLatches(code: FileProviderError.Code, errno: Errno) async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles, listing: "/") { fixture async throws in
                fixture.provider.faults.fail(.fetch, of: "f0", with: FileProviderError(code), times: nil)
                fixture.provider.faults.fail(.item, of: .rootContainer, with: FileProviderError(code), times: nil)
                #expect(await failure { _ = try await fixture.read("f0") }?.code == code)
                #expect(fixture.engine.connection.state != .online)
                #expect(await failure { _ = try await fixture.read("f1") }?.code == code)
                #expect(fixture.provider.log.count(of: .fetch) == 1)
            }
        }

        @Test("ERROR-5: calls that fail together ask for the root once") func oneProbe() async throws {
            try await EngineFixture.run(fill: EngineFixture.fortyFiles, listing: "/") { fixture async throws in
                fixture.provider.log.clear()
                let gate = fixture.provider.faults.hold(.item, of: .rootContainer)
                fixture.provider.faults.fail(.fetch, with: FileProviderError(.serverUnreachable), times: nil)
                await withTaskGroup(of: Void.self) { group in
                    for number in 0..<8 {
                        group.addTask { _ = try? await fixture.read(ItemIdentifier("f\(number)")) }
                    }
                    #expect(await eventually { fixture.provider.log.count(of: .fetch) >= 8 && gate.waiting > 0 })
                    #expect(gate.waiting == 1)
                    gate.open()
                    await group.waitForAll()
                }
            }
        }
    }
}
