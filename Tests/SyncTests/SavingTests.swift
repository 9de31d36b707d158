import FileProvider
import FileProviderTesting
import Foundation
import Replica
import TestSupport
import Testing

extension EngineTests {
    /// Programs save by renaming a new file over the old one, or by renaming the old one, writing a new one and removing the old.
    @Suite struct SavingTests {
        @Test("SEND-6: of the file that was saved over no attribute stays, on the remote either, nor comes back")
        func attributesGoWithTheOldFile() async throws {
            let fill: (inout RemoteTree) -> Void = { tree in
                ScriptRun.fill(&tree)
                tree.edit("a") { $0.extendedAttributes = ["k": [1]] }
            }
            try await Machine.run(fill: fill) { machine in
                let old = try await machine.item("a")
                #expect(try machine.replica.database.extendedAttributeNames(of: old.inode.number) == ["k"])
                try await machine.write("new", to: "a.new")
                try await machine.rename("a.new", to: "a")
                try await machine.drain()
                let saved = try await machine.item("a")
                #expect(saved.identifier == old.identifier)
                #expect(try machine.replica.database.extendedAttributeNames(of: saved.inode.number) == [])
                let remote = try #require(machine.provider.tree.entries()["a"])
                #expect(remote.content == "new")
                #expect(machine.provider.tree["a"]?.extendedAttributes == [:])
                #expect(try await machine.complaints() == [])
            }
        }

        @Test(
            "SEND-6: a file whose backup is removed after it was written anew is the same item, and pinned, still",
            arguments: ["a~", "d/a~"])
        func backupIsRemoved(backup: String) async throws {
            let fill: (inout RemoteTree) -> Void = { tree in
                ScriptRun.fill(&tree)
                tree.edit("a") { $0.extendedAttributes = ["k": [1]] }
            }
            try await Machine.run(fill: fill) { machine in
                let old = try await machine.item("a")
                #expect(try machine.replica.setPolicy(.keepDownloaded, of: old.inode.number))
                try await machine.rename("a", to: backup)
                try await machine.write("new", to: "a")
                try await machine.setPermissions(of: "a", to: 0o600)
                let new = try await machine.number("a")
                try await machine.remove(backup)
                let saved = try await machine.item("a")
                #expect(saved.identifier == old.identifier && saved.inode.number == new)
                #expect(try machine.replica.effectivePolicy(of: saved) == .keepDownloaded)
                machine.provider.log.clear()
                try await machine.drain()
                #expect(machine.provider.log.calls.allSatisfy { $0.kind != .create && $0.kind != .delete })
                let remote = try #require(machine.provider.tree["a"])
                #expect(machine.provider.tree.entries()["a"]?.content == "new")
                #expect(remote.extendedAttributes == [:] && remote.permissions == 0o600)
                #expect(try await machine.complaints() == [])
            }
        }

        @Test("PIN-1: a file that is written anew is pinned as its backup is") func backupStays() async throws {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine in
                let old = try await machine.item("a")
                #expect(try machine.replica.setPolicy(.keepDownloaded, of: old.inode.number))
                try await machine.rename("a", to: "a~")
                try await machine.write("new", to: "a")
                try await machine.write("another", to: "b")
                for name in ["a", "a~", "b"] {
                    let policy = try machine.replica.effectivePolicy(of: try await machine.item(name))
                    #expect((policy == .keepDownloaded) == (name != "b"), "\(name)")
                }
                try await machine.drain()
                #expect(try machine.replica.effectivePolicy(of: try await machine.item("a")) == .keepDownloaded)
                #expect(machine.provider.tree.entries()["a"]?.content == "new")
                #expect(try await machine.complaints() == [])
            }
        }

        @Test("SEND-6: a backup that the remote has already is removed there") func backupWasSent() async throws {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine in
                let old = try await machine.item("a")
                try await machine.rename("a", to: "a~")
                try await machine.drain()
                try await machine.write("new", to: "a")
                try await machine.remove("a~")
                try await machine.drain()
                #expect(try await machine.item("a").identifier != old.identifier)
                #expect(machine.provider.tree["a"] == nil && machine.provider.tree.entries()["a~"] == nil)
                #expect(machine.provider.tree.entries()["a"]?.content == "new")
                #expect(try await machine.complaints() == [])
            }
        }

        @Test("SEND-1: a file that is changed just before the answer to its upload is recorded is sent again")
        func changedBeforeTheAnswerIsRecorded() async throws {
            try await Machine.run { machine in
                try await machine.write("first", to: "file")
                try await machine.drain()
                try await machine.write("second", to: "file")
                let item = try await machine.item("file")
                let (number, identifier) = (item.inode.number, try #require(item.identifier))
                let gate = machine.provider.faults.hold(.modify, of: identifier)
                async let sent: Void = machine.send(passes: 1)
                #expect(await machine.provider.log.waits(.modify, identifier))
                try await machine.change { changes in
                    // The answer arrives now and waits for this transaction, in which the file is truncated and closed.
                    gate.open()
                    usleep(300_000)
                    try changes.contents.beginWriting(number, truncating: true, caller: Machine.caller)
                    try changes.contents.endWriting(number)
                }
                try await sent
                try await machine.drain()
                #expect(machine.provider.tree.entries()["file"]?.content == "")
                #expect(try await machine.complaints() == [])
            }
        }

        @Test("SEND-2: a new file that changes after its upload was prepared is sent once, with its new date and mode")
        func changedAfterThePreparation() async throws {
            try await Machine.run { machine in
                try await machine.write("first", to: "file")
                let number = try await machine.number("file")
                // The root is looked at between the preparation and the opening of the content.
                let gate = machine.provider.faults.hold(.enumerate, of: .rootContainer, times: 1)
                let sending = Task { try await machine.send(passes: 1) }
                #expect(await eventually { gate.waiting == 1 })
                try await machine.beginWriting(number)
                try machine.put("second", into: number)
                try await machine.close(number)
                try await machine.setPermissions(of: "file", to: 0o600)
                gate.open()
                try await sending.value
                let item = try await machine.item("file")
                let identifier = try #require(item.identifier)
                #expect(item.changedFields.isEmpty)
                let there = machine.provider.tree.entries()["file"]
                #expect(there?.content == "second")
                #expect(there?.modifiedAt == item.inode.modifiedAt)
                #expect(there?.permissions == 0o600)
                try await machine.drain()
                #expect(machine.provider.log.count(of: .create) == 1)
                #expect(machine.provider.log.count(of: .modify, identifier) == 0)
                #expect(try await machine.complaints() == [])
            }
        }
    }
}
