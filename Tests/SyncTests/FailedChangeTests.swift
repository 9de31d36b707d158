import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Changes that the remote refuses.
    @Suite struct FailedChangeTests {
        private func fill(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            tree.addFile("f", content: RemoteContent("text"), identifier: "f")
        }

        @Test("SEND-8: the reason of a change that cannot be sent stays when its item is read")
        func reasonsStay() async throws {
            try await Machine.run(fill: fill) { machine in
                let refusal = FileProviderError(.fileReadNoPermission, "not allowed")
                for identifier in ["d", "f"] as [ItemIdentifier] {
                    machine.provider.faults.fail(.modify, of: identifier, with: refusal, times: nil)
                }
                for path in ["d", "f"] { try await machine.setPermissions(of: path, to: 0o700) }
                try await machine.send()
                try await machine.listAll()
                #expect(try await machine.read("f") == "text")
                // All directories are compared.
                machine.provider.change { $0.expireAnchors() }
                try await machine.engine.refresh()
                let database = machine.replica.database
                for path in ["d", "f"] {
                    let failure = try await database.failure(of: machine.number(path))
                    #expect(failure?.message == "not allowed", "\(path)")
                }
                #expect(try database.failedChangeCount() == 2)
                machine.provider.faults.clear()
                try await machine.engine.retry(nil)
                try await machine.drain()
                #expect(try database.failedChangeCount() == 0)
                // What cannot be read is no change.
                machine.provider.faults.fail(.enumerate, of: "d", with: refusal, times: nil)
                machine.provider.change { $0.expireAnchors() }
                try? await machine.engine.refresh()
                #expect(try await database.failure(of: machine.number("d")) != nil)
                #expect(try database.failedChangeCount() == 0)
            }
        }

        @Test("SFTP-4: what the remote had no room for is sent again soon after something was deleted there")
        func roomAfterADeletion() async throws {
            try await Machine.run(fill: fill) { machine in
                try await machine.listAll()
                let database = machine.replica.database
                machine.provider.faults.fail(.create, with: FileProviderError(.insufficientQuota), times: nil)
                machine.provider.faults.fail(
                    .modify, of: "d", with: FileProviderError(.cannotSynchronize), times: nil)
                try await machine.write("text", to: "new")
                try await machine.setPermissions(of: "d", to: 0o700)
                try await machine.send(passes: 1)
                let (file, directory) = (try await machine.item("new").id, try await machine.item("d").id)
                let later = FileTimestamp.now.advanced(by: .seconds(15))
                for row in [file, directory] {
                    let next = try #require(try database.nextTry(ofItem: row))
                    #expect(next > later)
                }
                try await machine.remove("f")
                let deletion = try #require(try database.pendingDeletions().first)
                await machine.engine.runAlone(.deletion(deletion.id))
                #expect(try database.pendingDeletions().isEmpty)
                let soon = FileTimestamp.now.advanced(by: .seconds(10))
                let hastened = try #require(try database.nextTry(ofItem: file))
                let unchanged = try #require(try database.nextTry(ofItem: directory))
                #expect(hastened <= soon && unchanged > soon)
            }
        }

        @Test("SEND-11: the failure of a directory keeps back what is new in it only where the remote lacks it")
        func obstacles() async throws {
            try await Machine.run(fill: fill) { machine in
                let refusal = FileProviderError(.cannotSynchronize, "not allowed")
                machine.provider.faults.fail(.modify, of: "d", with: refusal, times: nil)
                machine.provider.faults.fail(.create, with: FileProviderError(.cannotSynchronize, "full"), times: nil)
                try await machine.setPermissions(of: "d", to: 0o700)
                try await machine.makeDirectory("new")
                for path in ["d/file", "new/file"] { try await machine.write("text", to: path) }
                try await machine.rename("f", to: "new/moved")
                // A change in a directory changes its date, so that its failure counts no longer.
                await machine.engine.runAlone(.modification(row: try await machine.item("d").id))
                await machine.engine.runAlone(.creation(row: try await machine.item("new").id))
                let obstacles: [String: String?] = [
                    "d": "not allowed", "d/file": nil, "new": "full", "new/file": "full", "new/moved": "full",
                ]
                for (path, message) in obstacles {
                    let row = try await machine.item(path).id
                    let obstacle = try machine.replica.database.obstacle(toSending: .item(row))
                    #expect(obstacle?.error.message == message, "\(path)")
                }
            }
        }

        @Test(
            "WRITE-12: of changes that the remote refuses together, it gets those that it takes alone, and only the others wait",
            arguments: [.filename, .contents, .permissions, [.filename, .contents]] as [ItemFields])
        func refusedTogether(refused: ItemFields) async throws {
            try await Machine.run(
                isInteractive: false,
                fill: {
                    $0.addFile("f", content: RemoteContent("old"), identifier: "f")
                    $0.edit("f") { $0.permissions = 0o644 }
                    $0.addFile("other", content: RemoteContent("other"))
                }
            ) { machine in
                let refusal = FileProviderError(.cannotSynchronize, "not this")
                machine.provider.faults.add(.failFields(refused, refusal), to: .modify, of: "f")
                try await machine.write("new", to: "f")
                try await machine.setPermissions(of: "f", to: 0o600)
                try await machine.rename("f", to: "g")
                let number = try await machine.number("g")
                let database = machine.replica.database
                // A new place waits for new content.
                let pending = refused.union(refused.contains(.contents) ? [.contentModificationDate, .filename] : [])
                let isParked = try await eventually(within: .seconds(15)) {
                    let message = try database.failure(of: number)?.message
                    return try database.item("f")?.changedFields == pending && message == "not this"
                }
                #expect(isParked)
                let name = pending.contains(.filename) ? "f" : "g"
                let entry = try #require(machine.provider.tree.entries()[name])
                #expect(entry.content == (refused.contains(.contents) ? "old" : "new"))
                #expect(entry.permissions == (refused.contains(.permissions) ? 0o644 : 0o600))
                // What is refused now waits for half a minute.
                try await machine.sendOthers("other", times: 10)
                #expect(machine.provider.log.count(of: .modify, "f") <= 8)
                machine.provider.faults.clear()
                try await machine.engine.retry()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(10)))
                try await machine.expectSettled()
            }
        }

        @Test("ERROR-6: what the remote refuses as a whole and in each part is sent again after a pause")
        func refusedInAllParts() async throws {
            try await Machine.run(
                isInteractive: false,
                fill: {
                    $0.addFile("f", content: RemoteContent("old"), identifier: "f")
                    $0.addFile("other", content: RemoteContent("other"))
                }
            ) { machine in
                machine.provider.faults.fail(
                    .modify, of: "f", with: FileProviderError(.fileReadNoPermission, "not allowed"), times: nil)
                // Both changes are there when the first of them is sent.
                machine.engine.pause(.user)
                try await machine.setPermissions(of: "f", to: 0o600)
                try await machine.rename("f", to: "g")
                machine.engine.pause(nil)
                #expect(await eventually(within: .seconds(15)) { machine.provider.log.count(of: .modify, "f") >= 3 })
                // The pause is half a minute.
                try await machine.sendOthers("other")
                let sent = machine.provider.log.calls(of: .modify, "f")
                let fields = sent.compactMap(\.fields)
                #expect(fields == [[.filename, .permissions], .filename, .permissions] as [ItemFields])
                // Without its new name it has the remote's.
                #expect(sent.compactMap(\.name) == ["g", "g", "f"])
            }
        }

        @Test("SEND-9: a conflict that the broken line keeps from being resolved is resolved later, without a warning")
        func lineBreaksInAConflict() async throws {
            try await Machine.run(fill: fill) { machine in
                let conflict = FileProviderError(.localVersionConflictingWithServer, "changed")
                machine.provider.faults.fail(.modify, of: "f", with: conflict)
                machine.provider.faults.fail(.item, with: FileProviderError(.serverUnreachable), times: nil)
                try await machine.write("new", to: "f")
                let item = try await machine.item("f")
                await machine.engine.runAlone(.modification(row: item.id))
                #expect(machine.provider.log.count(of: .modify, "f") == 1)
                #expect(machine.engine.connection.state == .offline)
                let texts = machine.engine.warnings.texts
                #expect(!texts.contains { $0.contains("cannot be recorded") }, "\(texts)")
                #expect(try machine.replica.database.failure(of: item.inode.number) == nil)
                machine.provider.faults.clear()
                machine.engine.errorWasResolved()
                try await machine.drain()
                #expect(machine.provider.tree.entries()["f"]?.content == "new")
            }
        }

        @Test(
            "ERROR-6: a change of which the provider says each time that it was cancelled is not sent again at once",
            arguments: [.modify, .item, .delete] as [ProviderCallKind])
        func cancelledByTheProvider(call: ProviderCallKind) async throws {
            try await Machine.run(isInteractive: false, fill: fill) { machine in
                machine.provider.faults.fail(call, of: "f", with: FileProviderError(.userCancelled), times: nil)
                if call == .item {
                    let conflict = FileProviderError(.localVersionConflictingWithServer, "changed")
                    machine.provider.faults.fail(.modify, of: "f", with: conflict, times: nil)
                }
                if call == .delete {
                    try await machine.remove("f")
                } else {
                    try await machine.write("new", to: "f")
                }
                let sent = call == .delete ? ProviderCallKind.delete : .modify
                #expect(await eventually(within: .seconds(15)) { machine.provider.log.count(of: sent, "f") >= 1 })
                try await machine.sendOthers("d", times: 8)
                let count = machine.provider.log.count(of: sent, "f")
                #expect(count <= 5, "\(count)")
                machine.provider.faults.clear()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(10)))
                #expect(machine.provider.tree.entries()["f"]?.content == (call == .delete ? nil : "new"))
            }
        }

        private func directory(_ tree: inout RemoteTree) { tree.addDirectory("d", identifier: "d") }

        @Test("ERROR-6: a change whose directory is missing only at first is sent again soon, and has not failed")
        func directoryIsFound() async throws {
            try await Machine.run(isInteractive: false, fill: directory) { machine in
                machine.provider.faults.fail(.create, with: FileProviderError.noSuchItem("d"), times: 2)
                try await machine.write("text", to: "d/file")
                let number = try await machine.number("d/file")
                try await machine.engine.send(number)
                #expect(machine.provider.tree.entries()["d/file"]?.content == "text")
            }
        }

        @Test("ERROR-6: a change that is refused again and again because of a directory that is there has failed")
        func directoryIsFoundInVain() async throws {
            try await Machine.run(fill: directory) { machine in
                machine.provider.faults.fail(.create, with: FileProviderError.noSuchItem("d"), times: nil)
                try await machine.write("text", to: "d/file")
                let item = try await machine.item("d/file")
                let database = machine.replica.database
                for _ in 0..<3 {
                    await machine.engine.runAlone(.creation(row: item.id))
                    #expect(try database.failure(of: item.inode.number) == nil)
                }
                await machine.engine.runAlone(.creation(row: item.id))
                #expect(try database.failure(of: item.inode.number)?.code == "noSuchItem")
                #expect(machine.provider.log.count(of: .create) == 4)
            }
        }

        @Test(
            "SEND-11: a temporary failure of an item that passes within seconds is not reported to the process that waits",
            arguments: [
                // The call is made again at once, twice.
                (.providerDomainTemporarilyUnavailable, 3), (.serverUnreachable, 2),
            ] as [(FileProviderError.Code, Int)])
        func temporaryFailures(code: FileProviderError.Code, times: Int) async throws {
            try await Machine.run(isInteractive: false) { machine in
                machine.provider.faults.fail(.create, with: FileProviderError(code, "not now"), times: times)
                try await machine.write("text", to: "file")
                try await machine.engine.send(try await machine.number("file"))
                #expect(machine.provider.tree.entries()["file"]?.content == "text")
                #expect(machine.provider.log.count(of: .create) == times + 1)
            }
        }

        @Test(
            "SEND-11: a temporary failure that does not pass is reported after ten seconds, and a timeout at once",
            arguments: [(.serverUnreachable, 10, 60), (.timedOut, 0, 8)] as [(FileProviderError.Code, Int, Int)])
        func lastingFailures(code: FileProviderError.Code, shortest: Int, longest: Int) async throws {
            try await Machine.run(isInteractive: false) { machine in
                machine.provider.faults.fail(.create, with: FileProviderError(code, "not now"), times: nil)
                try await machine.write("text", to: "file")
                let number = try await machine.number("file")
                let start = ContinuousClock.now
                let failure = await failure { try await machine.engine.send(number) }
                let took = ContinuousClock.now - start
                #expect(failure?.message == "not now")
                #expect(took >= .seconds(shortest) && took < .seconds(longest), "\(took)")
            }
        }
    }
}
