import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// What becomes of changes when the remote, or this machine, fails in the middle of them.
    @Suite struct FaultTests {
        // MARK: - What the remote says no to

        @Test("CONFLICT-7: a name that is taken gets another") func aNameThatIsTakenGetsAnother() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                try await machine.write("here", to: "n.txt")
                machine.provider.change { _ = $0.addFile("n.txt", content: RemoteContent("there")) }
                try await machine.send()
                try await machine.settle()
                #expect(try await machine.read("n.txt") == "there")
                #expect(try await machine.read("n (conflicted copy).txt") == "here")
            }
        }

        @Test(
            "ERROR-6: what is refused is parked and retried",
            arguments: [FileProviderError.Code.insufficientQuota, .cannotSynchronize])
        func refusedChangeIsParkedAndRetried(code: FileProviderError.Code) async throws {
            try await Machine.run(isInteractive: false, fill: ScriptRun.fill) { machine in
                machine.provider.faults.fail(.create, with: FileProviderError(code), times: nil)
                try await machine.write("new", to: "n")
                let number = try await machine.number("n")
                _ = try await machine.engine.waitUntilSynced(within: .milliseconds(300))
                #expect(
                    try await eventually { try machine.replica.database.failure(of: number)?.code == code.rawValue })
                #expect(machine.provider.log.count(of: .create) == 1)
                #expect(try await machine.read("n") == "new")
                machine.provider.faults.clear()
                try await machine.engine.retry()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(10)))
                try await machine.expectSettled()
            }
        }

        @Test(
            "CONFLICT-4: a conflict of which the remote shows nothing is tried later, and said",
            arguments: [FileProviderError.Code.versionNoLongerAvailable, .localVersionConflictingWithServer])
        func aConflictWithNothingIsNoLoop(code: FileProviderError.Code) async throws {
            try await Machine.run(isInteractive: false, fill: ScriptRun.fill) { machine in
                machine.provider.faults.fail(.modify, with: FileProviderError(code), times: nil)
                try await machine.rename("d/x", to: "x")
                let number = try await machine.number("x")
                _ = try await machine.engine.waitUntilSynced(within: .milliseconds(300))
                #expect(
                    try await eventually { try machine.replica.database.failure(of: number)?.code == code.rawValue })
                #expect(machine.provider.log.count(of: .modify) <= 2)
                machine.provider.faults.clear()
                try await machine.engine.retry()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(10)))
                try await machine.expectSettled()
            }
        }

        @Test("ERROR-5: a refusal concerns the item alone and delays no other") func aRefusedItemDelaysNoOther()
            async throws
        {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                try await machine.write("bad", to: "bad")
                try await machine.write("good", to: "good")
                let placeholder = try await machine.item("bad").placeholder
                machine.provider.faults.add(
                    .refuse(reason: "no"), to: .create, of: placeholder)
                try await machine.send(passes: 1)
                #expect(machine.provider.tree.identifier(at: "good") != nil)
                #expect(machine.provider.tree.identifier(at: "bad") == nil)
                machine.provider.faults.clear()
                try await machine.settle()
            }
        }

        @Test func anUnreachableRemoteIsWaitedForByAllTogether() async throws {
            try await Machine.run(isInteractive: false, fill: ScriptRun.fill) { machine in
                machine.provider.faults.failEverything(with: FileProviderError(.serverUnreachable))
                for number in 0..<20 { try await machine.write("text \(number)", to: "n\(number)") }
                _ = try await machine.engine.waitUntilSynced(within: .milliseconds(300))
                #expect(await eventually { machine.engine.connection.state == .offline })
                #expect(machine.provider.log.count(of: .create) <= 16)
                machine.provider.faults.clear()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(20)))
                try await machine.expectSettled()
            }
        }

        @Test("CONFLICT-8: a deletion that is rejected is taken back") func aDeletionThatIsRejectedIsTakenBack()
            async throws
        {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                try await machine.remove("d")
                machine.provider.change { _ = $0.addFile("late", in: "d", content: RemoteContent("late")) }
                try await machine.settle()
                #expect(try await machine.read("d/late") == "late")
                #expect(await !machine.exists("d/x"))
            }
        }

        // MARK: - Odd answers

        @Test("WRITE-12: what the remote cannot hold is kept here") func unsupportedFieldsAreKeptLocally()
            async throws
        {
            try await Machine.run(
                options: .with(\.holds, [.contents, .filename, .parentItemIdentifier]), fill: ScriptRun.fill
            ) {
                machine in
                let time = FileTimestamp(seconds: 1_000_000_000, nanoseconds: 5)
                try await machine.write("new", to: "n")
                try await machine.setTime(of: "n", to: time)
                try await machine.setPermissions(of: "n", to: 0o600)
                try await machine.setPermissions(of: "a", to: 0o640)
                try await machine.drain()
                #expect(try await machine.operations().isEmpty)
                #expect(try machine.replica.database.pendingCounts().items == 0)
                machine.provider.change { $0.edit("a") { $0.favoriteRank = 1 } }
                try await machine.ingest()
                #expect(try await machine.record("n").permissions == 0o600)
                #expect(try await machine.record("n").modifiedAt == time)
                #expect(try await machine.record("a").permissions == 0o640)
                try await machine.write("newer", to: "n")
                try await machine.drain()
                #expect(machine.provider.tree.entries()["n"]?.content == "newer")
                #expect(try await machine.operations().isEmpty)
            }
        }

        @Test("WRITE-12: attributes whose names are not UTF-8 are kept here where names are text")
        func attributesOfBytesAreKeptLocally() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                try await machine.write("new", to: "n")
                for path in ["a", "n"] {
                    let number = try await machine.number(path)
                    for name in ["k", "b\u{10FFFF}"] {
                        try await machine.change {
                            try $0.attributes.setExtendedAttribute(
                                name, of: number, to: [1], mustBeNew: false, mustExist: false,
                                caller: Machine.caller)
                        }
                    }
                }
                try await machine.drain()
                #expect(try machine.replica.database.pendingCounts().items == 0)
                for path in ["a", "n"] {
                    let remote = machine.provider.tree
                    let identifier = try #require(remote.identifier(at: path))
                    #expect(remote[identifier]?.extendedAttributes == ["k": [1]], "\(path)")
                    let number = try await machine.number(path)
                    let names = try machine.replica.database.extendedAttributeNames(of: number)
                    #expect(names == ["b\u{10FFFF}", "k"], "\(path)")
                }
            }
        }

        @Test(
            "WRITE-12: what the remote leaves pending is sent again later, and said",
            arguments: [ItemFields.contents, .filename])
        func fieldsLeftPendingAreNoLoop(field: ItemFields) async throws {
            try await Machine.run(isInteractive: false, fill: ScriptRun.fill) { machine in
                machine.provider.faults.add(.leavePending(field), to: .modify, of: "a")
                if field == .contents {
                    try await machine.write("other", to: "a")
                } else {
                    try await machine.rename("a", to: "n")
                }
                let name = field == .contents ? "a" : "n"
                let number = try await machine.number(name)
                _ = try await machine.engine.waitUntilSynced(within: .milliseconds(300))
                #expect(
                    try await eventually {
                        try machine.replica.database.failure(of: number)?.code == "cannotSynchronize"
                    })
                // A loop would have sent it hundreds of times.
                #expect(machine.provider.log.count(of: .modify, "a") < 4)
                #expect(await machine.exists(name))
                machine.provider.faults.clear()
                try await machine.engine.retry()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(10)))
                try await machine.expectSettled()
                let content = field == .contents ? "other" : "first a"
                #expect(machine.provider.tree.entries()[name]?.content == content)
            }
        }

        @Test("NAME-4: another identifier is taken over") func anotherIdentifierIsTakenOver() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                machine.provider.faults.add(.answerIdentifier("a, second"), to: .modify, of: "a", times: 1)
                try await machine.rename("a", to: "n")
                let number = try await machine.number("n")
                try await machine.settle()
                #expect(try await machine.number("n") == number)
                #expect(try await machine.item("n").identifier == "a, second")
                try await machine.write("again", to: "n")
                try await machine.settle()
            }
        }

        @Test func aDirectoryThatGetsAnotherIdentifierKeepsItsChildren() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                machine.provider.faults.add(.answerIdentifier("d, second"), to: .modify, of: "d", times: 1)
                try await machine.rename("d", to: "n")
                try await machine.write("other", to: "n/x")
                try await machine.write("new", to: "n/new")
                try await machine.settle()
                #expect(try await machine.read("n/new") == "new")
                #expect(machine.provider.tree.entries().count == 8)
            }
        }

        @Test("SEND-15: what the remote made of a file is fetched") func contentRewrittenByRemoteIsFetched()
            async throws
        {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                machine.provider.faults.add(.shouldFetchContent(RemoteContent("as it is kept")), to: .create, times: 1)
                try await machine.write("as it was sent", to: "n")
                try await machine.settle()
                #expect(try await machine.read("n") == "as it is kept")
            }
        }

        // MARK: - Written while it is sent

        @Test("SEND-3: what is written during an upload is not mixed and sent again")
        func writeDuringUploadIsNotMixedAndIsSentAgain() async throws {
            try await Machine.run(options: .with(\.uploadChunkSize, 4), fill: ScriptRun.fill) { machine in
                let gate = Gate()
                machine.provider.faults.add(.holdTransfer(after: 4, gate), to: .modify, times: 1)
                let number = try await machine.open("a")
                try machine.put("11111111", into: number)
                try machine.engine.noteWrittenFiles()
                let sending = Task { try await machine.send(passes: 1) }
                #expect(await eventually { gate.waiting == 1 })
                try machine.put("22222222", into: number)
                gate.open()
                try await sending.value
                #expect(machine.provider.tree.entries()["a"]?.content == "first a")
                try await machine.close(number)
                try await machine.settle()
                #expect(machine.provider.tree.entries()["a"]?.content == "22222222")
            }
        }

        @Test func writeAfterLastReadOfUploadIsSentAgain() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                try await machine.write("11111111", to: "n", thenWhileItIsSent: "22222222", by: .create)
                try await machine.expectSettled()
                #expect(machine.provider.tree.entries()["n"]?.content == "22222222")
                #expect(machine.provider.tree.applied.filter { $0.size != nil }.map(\.kind) == [.create, .modify])
            }
        }

        @Test func aFileThatIsMovedAndRemovedWhileItIsSentGoesThere() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                try await machine.write("new", to: "n")
                let gate = machine.provider.faults.hold(.create, times: 1)
                let sending = Task { try await machine.send() }
                #expect(await eventually { gate.waiting == 1 })
                try await machine.rename("n", to: "d/m")
                try await machine.remove("d/m")
                gate.open()
                try await sending.value
                try await machine.settle()
                #expect(machine.provider.tree.entries().count == 7)
            }
        }
    }
}
