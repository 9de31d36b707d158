import FileProvider
import FileProviderTesting
import Logging
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// What happens while the remote is away.
    @Suite struct ConnectionTests {
        private struct Odd: Error {}

        private func files(_ tree: inout RemoteTree) {
            for number in 0..<60 {
                tree.addFile("f\(number)", content: RemoteContent("x"), identifier: ItemIdentifier("f\(number)"))
            }
        }

        @Test(arguments: [
            (FileProviderError.Code.serverUnreachable, Connection.State.offline), (.notAuthenticated, .unauthenticated),
            (.providerNotFound, .offline),
        ])
        func oneFailureStopsTheCallsOfAll(code: FileProviderError.Code, state: Connection.State) async throws {
            try await EngineFixture.run(fill: files, listing: "/") { fixture async throws in
                #expect(fixture.engine.connection.state == .online)
                fixture.provider.faults.failEverything(with: FileProviderError(code))
                let start = ContinuousClock.now
                for number in 0..<20 {
                    let failure = await failure { _ = try await fixture.read(ItemIdentifier("f\(number)")) }
                    #expect(failure?.code == code)
                }
                // One, and on a slow machine one more for each second.
                let seconds = Int((ContinuousClock.now - start).components.seconds)
                #expect((1...1 + seconds).contains(fixture.provider.log.count(of: .fetch)))
                #expect(fixture.engine.connection.state == state)
                // What concerns all is no fault of the file.
                #expect(try fixture.replica.database.failure(of: fixture.number("f0")) == nil)
            }
        }

        @Test func queuedCallsFailWithoutACallOfTheirOwn() async throws {
            try await EngineFixture.run(options: .with(\.concurrentCalls, 4), fill: files, listing: "/") {
                fixture async throws in
                let gate = fixture.provider.faults.hold(.fetch)
                fixture.provider.faults.fail(.fetch, with: FileProviderError(.serverUnreachable), times: nil)
                fixture.provider.faults.fail(.item, with: FileProviderError(.serverUnreachable), times: nil)
                await withTaskGroup(of: FileProviderError.Code?.self) { group in
                    for number in 0..<50 {
                        group.addTask {
                            await failure { _ = try await fixture.read(ItemIdentifier("f\(number)")) }?.code
                        }
                    }
                    #expect(await eventually { gate.waiting == 4 })
                    gate.open()
                    for await code in group { #expect(code == .serverUnreachable) }
                }
                #expect(fixture.provider.log.count(of: .fetch) == 4)
                // Four calls that fail together are one outage: the first probe comes soon.
                #expect(fixture.engine.connection.pauseBeforeProbe == .seconds(1))
            }
        }

        @Test(arguments: [FileProviderError.Code.serverUnreachable, .notAuthenticated, .providerNotFound])
        func theLatchLiftsByItself(code: FileProviderError.Code) async throws {
            try await EngineFixture.run(fill: files, listing: "/") { fixture async throws in
                fixture.engine.start()
                #expect(await fixture.provider.log.waits(.anchor))
                fixture.provider.faults.failEverything(with: FileProviderError(code))
                #expect(await failure { _ = try await fixture.read("f1") }?.code == code)
                fixture.provider.faults.clear()
                #expect(await eventually(within: .seconds(10)) { fixture.engine.connection.state == .online })
                #expect(try await fixture.read("f1") == Array("x".utf8))
            }
        }

        @Test("the reason of a remote that is away is that of the last look") func theReasonIsTheLast() async throws {
            try await EngineFixture.run(fill: files, listing: "/") { fixture async throws in
                let faults = fixture.provider.faults
                faults.failEverything(with: FileProviderError(.serverUnreachable, "first"))
                _ = await failure { _ = try await fixture.read("f1") }
                #expect(fixture.engine.connection.failure?.message == "first")
                faults.clear()
                faults.failEverything(with: FileProviderError(.serverUnreachable, "second"))
                let isNew = await eventually(within: .seconds(10)) {
                    _ = await failure { _ = try await fixture.read("f2") }
                    return fixture.engine.connection.failure?.message == "second"
                }
                #expect(isNew)
            }
        }

        @Test func aLatchAndAPauseResumeThoseThatWait() {
            let connection = Connection(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            let before = connection.changes.count
            connection.failed(with: FileProviderError(.serverUnreachable))
            #expect(connection.changes.count == before + 1)
            connection.pause(.user)
            #expect(connection.changes.count == before + 2)
        }

        @Test("LIMIT-6: a pause says its reason, and the last one holds") func aPauseSaysItsReason() {
            let connection = Connection(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            connection.pause(.metered)
            #expect(connection.state == .paused && connection.failure?.message.contains("metered") == true)
            connection.pause(.user)
            #expect(connection.state == .paused && connection.failure?.message.contains("metered") == false)
            connection.pause(nil)
            #expect(connection.state == .online && connection.failure == nil)
        }

        @Test(
            "ERROR-3: however often it fails, the next try is soon, and the first success resets all",
            arguments: [
                (FileProviderError.Code.serverUnreachable, Duration.seconds(4)), (.notAuthenticated, .seconds(60)),
            ])
        func thePauseHasACap(code: FileProviderError.Code, longest: Duration) async throws {
            let connection = Connection(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            var pauses: [Duration] = []
            for attempt in 0..<30 {
                // Failures within a second count as one attempt.
                connection.failed(with: FileProviderError(code), at: .now + .seconds(2 * attempt))
                pauses.append(connection.pauseBeforeProbe)
            }
            #expect(pauses.first == .seconds(1))
            #expect(pauses == pauses.sorted())
            #expect(pauses.last == longest)
            connection.succeeded()
            connection.failed(with: FileProviderError(code))
            #expect(connection.pauseBeforeProbe == .seconds(1))
        }

        @Test("ERROR-9: a provider that says it is resolved is asked at once")
        func aProviderThatSaysItIsResolvedIsAskedAtOnce() async throws {
            try await EngineFixture.run(fill: files, listing: "/") { fixture async throws in
                fixture.provider.faults.fail(.fetch, with: FileProviderError(.notAuthenticated))
                fixture.provider.faults.fail(.item, with: FileProviderError(.notAuthenticated))
                #expect(await failure { _ = try await fixture.read("f1") }?.code == .notAuthenticated)
                fixture.engine.errorWasResolved()
                #expect(try await fixture.read("f1") == Array("x".utf8))
            }
        }

        @Test func localContentIsReadableWhileOffline() async throws {
            try await EngineFixture.run(fill: files, listing: "/") { fixture async throws in
                _ = try await fixture.read("f1")
                #expect(try await eventually { try fixture.inode("f1").content == .materialized })
                fixture.provider.faults.failEverything(with: FileProviderError(.serverUnreachable))
                _ = await failure { _ = try await fixture.read("f2") }
                #expect(try await fixture.read("f1") == Array("x".utf8))
                #expect(try await fixture.list().count == 60)
            }
        }

        @Test func anErrorOfNoKnownKindIsTriedAgain() async throws {
            try await EngineFixture.run(fill: files, listing: "/") { fixture async throws in
                fixture.provider.faults.fail(.fetch, with: Odd(), times: 2)
                #expect(try await fixture.read("f1") == Array("x".utf8))
                #expect(fixture.provider.log.count(of: .fetch) == 3)

                fixture.provider.faults.fail(.fetch, with: Odd(), times: nil)
                let failure = await failure { _ = try await fixture.read("f2") }
                #expect(failure?.readerErrno == .ioError)
                #expect(try fixture.replica.database.failure(of: fixture.number("f2"))?.attempts == 1)
            }
        }

        @Test func anErrorOfTheItemsOwnDoesNotLatch() async throws {
            try await EngineFixture.run(fill: files, listing: "/") { fixture async throws in
                fixture.provider.faults.fail(.fetch, of: "f1", with: FileProviderError(.fileReadNoPermission))
                #expect(await failure { _ = try await fixture.read("f1") }?.code == .fileReadNoPermission)
                #expect(fixture.engine.connection.state == .online)
                #expect(
                    try fixture.replica.database.failure(of: fixture.number("f1"))?.code == "fileReadNoPermission")
                #expect(try await fixture.read("f2") == Array("x".utf8))
            }
        }
    }
}
