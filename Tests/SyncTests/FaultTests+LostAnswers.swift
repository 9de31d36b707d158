import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

/// Changes whose answers were lost, and crashes in the middle of a call.
extension EngineTests.FaultTests {
    private func sendWithoutAnswer(_ kind: ProviderCallKind, _ machine: Machine) async throws {
        machine.provider.faults.add(.applyThenFail(FileProviderError(.timedOut)), to: kind)
        try await machine.send(passes: 1)
        machine.provider.faults.clear()
    }

    @Test("SEND-2: an answer that was lost makes nothing twice") func anAnswerThatWasLostMakesNothingTwice()
        async throws
    {
        try await Machine.run(fill: ScriptRun.fill) { machine in
            try await machine.write("new", to: "n")
            try await machine.makeDirectory("m")
            try await machine.write("other", to: "a")
            try await machine.rename("d", to: "moved")
            try await machine.remove("b")
            for kind in [ProviderCallKind.create, .modify, .delete] {
                machine.provider.faults.add(.applyThenFail(FileProviderError(.timedOut)), to: kind)
            }
            try await machine.send(passes: 2)
            machine.provider.faults.clear()
            try await machine.settle()
            let applied = machine.provider.tree.applied
            #expect(applied.filter { $0.kind == .create }.count == 2)
            #expect(applied.filter { $0.kind == .modify && $0.fields.contains(.contents) }.count == 1)
        }
    }

    @Test(
        "SEND-2: a name that a renaming without an answer has taken is free again when its item is removed or renamed",
        arguments: [true, false], [true, false])
    func nameOfAnUnansweredRenaming(isRemoved: Bool, isDirectory: Bool) async throws {
        try await Machine.run(fill: ScriptRun.fill) { machine in
            try await machine.rename("a", to: "taken")
            try await sendWithoutAnswer(.modify, machine)
            #expect(machine.provider.tree.entries().keys.contains("taken"))
            if isRemoved { try await machine.remove("taken") } else { try await machine.rename("taken", to: "z") }
            if isDirectory {
                try await machine.makeDirectory("taken")
            } else {
                try await machine.write("new", to: "taken")
            }
            // The new one is sent before what frees the name.
            for kind in [ProviderCallKind.modify, .delete] {
                machine.provider.faults.fail(kind, with: FileProviderError(.timedOut))
            }
            try await machine.send(passes: 1)
            try await machine.drain()
            let entries = machine.provider.tree.entries()
            #expect(entries["taken"]?.content == (isDirectory ? nil : "new"))
            #expect(!entries.keys.contains { $0.contains("conflicted copy") }, "\(entries.keys.sorted())")
            #expect(!entries.keys.contains("a"))
            #expect(entries.keys.contains("z") == !isRemoved)
            #expect(await machine.exists("taken"))
            try await machine.expectSettled()
        }
    }

    @Test(arguments: ["create", "edit", "move", "delete"], [true, false])
    func aCrashInTheMiddleOfACallLosesNothing(what: String, isApplied: Bool) async throws {
        try await Machine.run(fill: ScriptRun.fill) { machine in
            let kind: ProviderCallKind
            switch what {
            case "create":
                try await machine.write("new", to: "n")
                kind = .create
            case "edit":
                try await machine.write("other", to: "a")
                kind = .modify
            case "move":
                try await machine.rename("d/x", to: "x")
                kind = .modify
            default:
                try await machine.remove("b")
                kind = .delete
            }
            // What the machine has recorded by the time that the call is on its way is all that the next one knows.
            let gate = machine.provider.faults.hold(kind, times: 1)
            let sending = Task { try await machine.send() }
            #expect(await eventually { gate.waiting == 1 })
            let next = try machine.crash()
            if isApplied {
                gate.open()
                try await sending.value
            } else {
                await machine.engine.stop()
                sending.cancel()
                _ = try? await sending.value
            }
            machine.provider.faults.clear()
            try await next.settle()
            if what == "create" { #expect(try await next.read("n") == "new") }
            if what == "edit" { #expect(try await next.read("a") == "other") }
            let applied = machine.provider.tree.applied
            #expect(applied.filter { $0.kind == .create }.count == (what == "create" ? 1 : 0))
            #expect(applied.filter { $0.fields.contains(.contents) && $0.kind == .modify }.count <= 1)
            await next.stop()
        }
    }

    @Test func editAfterCrashDoesNotConflictWithOwnUpload() async throws {
        try await Machine.run(fill: ScriptRun.fill) { machine in
            try await machine.write("other", to: "a")
            let gate = machine.provider.faults.hold(.modify, times: 1)
            let sending = Task { try await machine.send() }
            #expect(await eventually { gate.waiting == 1 })
            let next = try machine.crash()
            gate.open()
            try await sending.value
            try await next.write("third", to: "a")
            try await next.settle()
            let entries = next.provider.tree.entries()
            #expect(entries["a"]?.content == "third" || entries.values.contains { $0.content == "other" })
            #expect(entries.values.contains { $0.content == "third" })
            await next.stop()
        }
    }

    @Test("SEND-14: what was made, removed, and never answered is not shown again")
    func itemRemovedBeforeAcknowledgementStaysRemoved() async throws {
        try await Machine.run(fill: ScriptRun.fill) { machine in
            try await machine.write("new", to: "n")
            try await sendWithoutAnswer(.create, machine)
            try await machine.remove("n")
            #expect(machine.provider.tree.entries()["n"] != nil)
            try await machine.ingest()
            #expect(await !machine.exists("n"))
            try await machine.drain()
            #expect(machine.provider.tree.entries()["n"] == nil)
            try await machine.expectSettled()
        }
    }

    @Test(
        "SEND-14: what was removed or renamed while it was sent once more is not left there",
        arguments: [true, false])
    func itemRemovedDuringRetryIsRemovedRemotely(isRemoved: Bool) async throws {
        try await Machine.run(fill: ScriptRun.fill) { machine in
            try await machine.write("new", to: "n")
            try await sendWithoutAnswer(.create, machine)
            #expect(machine.provider.tree.entries()["n"]?.content == "new")
            try await machine.write("newer", to: "n")
            let gate = machine.provider.faults.hold(.create, times: 1)
            let sending = Task { try await machine.send(passes: 1) }
            #expect(await eventually { gate.waiting == 1 })
            if isRemoved { try await machine.remove("n") } else { try await machine.rename("n", to: "d/m") }
            gate.open()
            try await sending.value
            try await machine.drain()
            #expect(machine.provider.tree.entries()["n"] == nil)
            #expect(machine.provider.tree.entries()["d/m"]?.content == (isRemoved ? nil : "newer"))
            try await machine.expectSettled()
        }
    }

    @Test("SEND-14: what was moved, rewritten, and removed without an answer is removed there, too")
    func movedUnacknowledgedItemIsRemovedRemotely() async throws {
        try await Machine.run(fill: ScriptRun.fill) { machine in
            try await machine.write("other", to: "a")
            try await machine.rename("a", to: "d/moved")
            try await sendWithoutAnswer(.modify, machine)
            #expect(machine.provider.tree.entries()["d/moved"]?.content == "other")
            try await machine.remove("d/moved")
            try await machine.drain()
            #expect(machine.provider.tree.entries()["d/moved"] == nil)
            try await machine.expectSettled()
        }
    }

    @Test("SEND-14: what was changed without an answer, and removed, is done with when its directory is gone there")
    func deletionInVanishedDirectoryIsComplete() async throws {
        try await Machine.run(fill: ScriptRun.fill) { machine in
            try await machine.write("other", to: "d/x")
            try await sendWithoutAnswer(.modify, machine)
            try await machine.remove("d/x")
            machine.provider.change { $0.delete("d") }
            machine.provider.faults.fail(.enumerate, of: "d", with: FileProviderError(.noSuchItem), times: nil)
            try await machine.send()
            #expect(try machine.replica.database.pendingDeletions().isEmpty)
        }
    }
}
