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

        @Test(
            "SEND-14: a new file that arrives on the remote after it was removed here, and looked for, is deleted",
            arguments: [false, true])
        func removedBeforeItArrives(isDateCut: Bool) async throws {
            try await Machine.run { machine in
                machine.provider.faults.add(.fail(FileProviderError(.timedOut)), to: .create, times: 1)
                try await machine.write("mine", to: "file")
                let date = try await machine.record("file").modifiedAt
                try await machine.send(passes: 1)
                try await machine.remove("file")
                try await machine.drain()
                #expect(try machine.replica.database.pendingDeletions().isEmpty)
                machine.provider.arrive("file", "mine", isDateCut ? FileTimestamp(seconds: date.seconds) : date)
                try await machine.ingest()
                #expect(try await machine.names(in: .root).isEmpty)
                try await machine.drain()
                #expect(machine.provider.tree.entries().isEmpty)
                #expect(try await machine.names(in: .root).isEmpty)
            }
        }

        @Test(
            "SEND-14: where the remote keeps no dates, what was sent without an answer and removed is known by its content",
            arguments: [("mine", 5, true), ("them", 5, false), ("mine", 60, false), ("mine", -60, false)])
        func remoteWithoutDates(content: String, arrivesAfter seconds: Int, isOwn: Bool) async throws {
            var options = InMemoryProvider.Options()
            options.holds.remove(.contentModificationDate)
            try await Machine.run(options: options) { machine in
                machine.provider.faults.add(.fail(FileProviderError(.timedOut)), to: .create, times: 1)
                try await machine.write("mine", to: "file")
                let uploaded = try await machine.record("file").modifiedAt.advanced(by: .seconds(seconds))
                try await machine.send(passes: 1)
                machine.provider.arrive("file", content, uploaded)
                try await machine.remove("file")
                try await machine.drain()
                #expect(machine.provider.tree.entries().count == (isOwn ? 0 : 1))
                #expect(try await machine.names(in: .root).count == (isOwn ? 0 : 1))
            }
        }

        @Test("SEND-14: content without an answer stays known while a call without it is answered")
        func changedInBetween() async throws {
            try await Machine.run(fill: { $0.addFile("file", content: RemoteContent("base"), identifier: "f") }) {
                machine in
                let faults = machine.provider.faults
                faults.add(.fail(FileProviderError(.timedOut)), to: .modify, times: 1)
                try await machine.write("mine", to: "file")
                let date = try await machine.record("file").modifiedAt
                try await machine.send(passes: 1)
                faults.add(.failFields(.contents, FileProviderError(.cannotSynchronize)), to: .modify)
                try await machine.setPermissions(of: "file", to: 0o600)
                // Both together, the content alone, then the permissions alone.
                try await machine.send(passes: 3)
                let entry = try #require(machine.provider.tree.entries()["file"])
                #expect(entry.content == "base" && entry.permissions == 0o600)
                faults.clear()
                // The first request arrives.
                machine.provider.changeSilently { tree in
                    tree.write(RemoteContent("mine"), to: "f")
                    tree.edit("f") { $0.contentModificationDate = date }
                }
                try await machine.remove("file")
                try await machine.drain()
                #expect(machine.provider.tree.entries().isEmpty)
                #expect(try await machine.names(in: .root).isEmpty)
            }
        }

        @Test("SEND-14: what arrives late is deleted without another change here")
        func arrivesLater() async throws {
            var delays = UploadDelays()
            delays.delay = .milliseconds(10)
            var options = InMemoryProvider.Options()
            // As the remotes that people mount: no set that a provider follows wakes the uploads.
            options.followsLocalSets = false
            try await Machine.run(options: options, isInteractive: false, uploadDelays: delays) { machine in
                let gate = machine.provider.faults.hold(.create)
                machine.provider.faults.add(.fail(FileProviderError(.timedOut)), to: .create, times: 1)
                try await machine.write("mine", to: "file")
                let date = try await machine.record("file").modifiedAt
                #expect(await eventually { gate.waiting == 1 })
                try await machine.remove("file")
                gate.open()
                #expect(await eventually { (try? machine.replica.database.pendingDeletions().isEmpty) == true })
                machine.provider.arrive("file", "mine", date)
                try await machine.engine.refresh()
                #expect(await eventually { machine.provider.tree.entries().isEmpty })
            }
        }

        @Test("SEND-14: a new file that arrives under its first name after it was renamed here is deleted")
        func renamedBeforeItArrives() async throws {
            try await Machine.run { machine in
                let date = try await machine.renameBeforeItArrives()
                machine.provider.arrive("file", "mine", date)
                try await machine.drain()
                #expect(machine.provider.tree.entries().mapValues(\.content) == ["renamed": "mine"])
                #expect(try await machine.names(in: .root) == ["renamed"])
            }
        }

        @Test("SEND-14: a new file that was renamed and removed is deleted where it arrives", arguments: [false, true])
        func renamedAndRemoved(isLate: Bool) async throws {
            try await Machine.run { machine in
                let error = FileProviderError(.timedOut)
                machine.provider.faults.add(isLate ? .fail(error) : .applyThenFail(error), to: .create, times: 1)
                try await machine.write("mine", to: "file")
                let date = try await machine.record("file").modifiedAt
                try await machine.send(passes: 1)
                try await machine.rename("file", to: "renamed")
                if isLate { try await machine.drain() }
                try await machine.remove("renamed")
                try await machine.drain()
                if isLate { machine.provider.arrive("file", "mine", date) }
                try await machine.drain()
                #expect(machine.provider.tree.entries().isEmpty)
                #expect(try await machine.names(in: .root).isEmpty)
            }
        }

        @Test("SEND-14: a new file that another machine has given its first name again is not deleted")
        func renamedBack() async throws {
            try await Machine.run { machine in
                _ = try await machine.renameBeforeItArrives()
                // As on a remote that knows its items by their paths.
                machine.provider.change { tree in
                    guard let there = tree.identifier(at: "renamed"), let item = tree[there] else { return }
                    tree.delete(there)
                    let back = tree.addFile("file", content: RemoteContent("mine"), identifier: "back")
                    tree.edit(back) { $0.contentModificationDate = item.contentModificationDate }
                }
                try await machine.drain()
                #expect(machine.provider.tree.entries().mapValues(\.content) == ["file": "mine"])
                #expect(try await machine.names(in: .root) == ["file"])
                #expect(try await machine.read("file") == "mine")
            }
        }

        @Test("SEND-14: what is being sent when the domain stops gets its answer")
        func underWayAtStop() async throws {
            try await Machine.run { machine in
                try await machine.write("mine", to: "file")
                let gate = Gate()
                machine.provider.faults.add(.holdTransfer(after: 4, gate), to: .create)
                let sending = Task { try await machine.send(passes: 1) }
                #expect(await eventually { gate.waiting == 1 })
                let stopping = Task { await machine.engine.stop(patience: .seconds(60)) }
                try await Task.sleep(for: .milliseconds(200))
                gate.open()
                await stopping.value
                try await sending.value
                let pending = try machine.replica.database.pendingItems(after: 0, limit: 10)
                #expect(!pending.contains { $0.item.identifier == nil })
                #expect(machine.provider.tree.entries().mapValues(\.content) == ["file": "mine"])
            }
        }

        @Test("SEND-14: a directory of another machine is shown under the name of a new one that was removed here")
        func directoryOfOther() async throws {
            try await Machine.run { machine in
                machine.provider.faults.add(.fail(FileProviderError(.timedOut)), to: .create, times: 1)
                try await machine.makeDirectory("directory")
                try await machine.send(passes: 1)
                try await machine.remove("directory")
                try await machine.drain()
                machine.provider.change { _ = $0.addDirectory("directory") }
                try await machine.drain()
                #expect(machine.provider.tree.entries().keys.sorted() == ["directory"])
                #expect(try await machine.names(in: .root) == ["directory"])
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

extension Machine {
    /// A new file is offered without an answer, and renamed.
    fileprivate func renameBeforeItArrives() async throws -> FileTimestamp {
        provider.faults.add(.fail(FileProviderError(.timedOut)), to: .create, times: 1)
        try await write("mine", to: "file")
        let date = try await record("file").modifiedAt
        try await send(passes: 1)
        try await rename("file", to: "renamed")
        try await drain()
        #expect(provider.tree.entries().mapValues(\.content) == ["renamed": "mine"])
        return date
    }
}

extension InMemoryProvider {
    /// The request for a new file arrives late.
    fileprivate func arrive(_ path: String, _ content: String, _ date: FileTimestamp) {
        change { tree in
            let there = tree.addFile(path, content: RemoteContent(content))
            tree.edit(there) { $0.contentModificationDate = date }
        }
    }

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
