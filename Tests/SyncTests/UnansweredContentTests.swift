import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// What was sent without an answer, on a remote that cuts dates to seconds: the content shows what it is.
    @Suite struct UnansweredContentTests {
        @Test(
            "CONFLICT-3: what was sent without an answer and changed since is recognized where the remote cuts dates to seconds",
            arguments: [true, false])
        func cutDate(isNew: Bool) async throws {
            try await Machine.run { machine in
                if !isNew {
                    try await machine.write("base", to: "file")
                    try await machine.drain()
                }
                machine.provider.faults.add(
                    .applyThenFail(FileProviderError(.timedOut)), to: isNew ? .create : .modify, times: 1)
                try await machine.write("first", to: "file")
                try await machine.send(passes: 1)
                machine.provider.cutDate(of: "file")
                try await machine.write("later on", to: "file")
                try await machine.drain()
                #expect(machine.provider.tree.entries().mapValues(\.content) == ["file": "later on"])
                #expect(try machine.replica.database.conflictCopies().isEmpty)
            }
        }

        @Test(
            "SEND-14: what was sent without an answer and removed since is deleted where the remote cuts dates to seconds"
        )
        func cutDateOfRemoved() async throws {
            try await Machine.run { machine in
                machine.provider.faults.add(.applyThenFail(FileProviderError(.timedOut)), to: .create, times: 1)
                try await machine.write("mine", to: "file")
                try await machine.send(passes: 1)
                machine.provider.cutDate(of: "file")
                try await machine.remove("file")
                try await machine.ingest()
                #expect(try await machine.names(in: .root).isEmpty)
                try await machine.drain()
                #expect(try await machine.names(in: .root).isEmpty)
                #expect(machine.provider.tree.entries().isEmpty)
            }
        }

        @Test(
            "CONFLICT-3: a provider that knows its items by path is told where one is that has no row here and is compared"
        )
        func placeOfCompared() async throws {
            try await Machine.run { machine in
                try await machine.write("mine", to: "file")
                machine.provider.changeSilently {
                    _ = $0.addFile("file", content: RemoteContent("them"), identifier: "theirs")
                }
                let gate = machine.provider.faults.hold(.fetch)
                let sending = Task { try await machine.send(passes: 1) }
                #expect(await eventually { gate.waiting == 1 })
                #expect(try machine.replica.database.remoteItems.path(of: "theirs") == ["file"])
                gate.open()
                try await sending.value
            }
        }

        @Test(
            "SEND-14: a file that another machine has put in the place of a removed one is shown, also without another change"
        )
        func replacedMeanwhile() async throws {
            try await Machine.run { machine in
                try await machine.write("base", to: "file")
                try await machine.drain()
                machine.provider.faults.add(.fail(FileProviderError(.timedOut)), to: .modify, times: 1)
                try await machine.write("mine", to: "file")
                let time = try await machine.record("file").modifiedAt
                try await machine.send(passes: 1)
                try await machine.remove("file")
                machine.provider.change { tree in
                    tree.identifier(at: "file").map { tree.delete($0) }
                    let there = tree.addFile("file", content: RemoteContent("them"), identifier: "other")
                    tree.edit(there) { $0.contentModificationDate = FileTimestamp(seconds: time.seconds) }
                }
                try await machine.drain()
                #expect(try await machine.names(in: .root) == ["file"])
                #expect(try await machine.read("file") == "them")
            }
        }

        @Test("SEND-14: another machine's file of the same second and size is shown in the place of the removed one")
        func otherThanRemoved() async throws {
            try await Machine.run { machine in
                machine.provider.faults.add(.fail(FileProviderError(.timedOut)), to: .create, times: 1)
                try await machine.write("mine", to: "file")
                let time = try await machine.record("file").modifiedAt
                try await machine.send(passes: 1)
                machine.provider.changeSilently { tree in
                    let there = tree.addFile("file", content: RemoteContent("them"))
                    tree.edit(there) { $0.contentModificationDate = FileTimestamp(seconds: time.seconds) }
                }
                try await machine.remove("file")
                try await machine.ingest()
                #expect(try await machine.names(in: .root).isEmpty)
                try await machine.drain()
                #expect(try await machine.read("file") == "them")
                #expect(machine.provider.tree.entries().mapValues(\.content) == ["file": "them"])
            }
        }
    }
}

extension InMemoryProvider {
    /// A remote that stores whole seconds.
    fileprivate func cutDate(of path: String) {
        changeSilently { tree in
            guard let there = tree.identifier(at: path) else { return }
            tree.edit(there) { item in
                item.contentModificationDate = item.contentModificationDate.map { FileTimestamp(seconds: $0.seconds) }
            }
        }
    }
}
