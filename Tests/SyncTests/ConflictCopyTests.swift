import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Conflict copies are few, whatever a remote makes of what is sent to it.
    @Suite struct ConflictCopyTests {
        /// Changes `a` on both sides, which makes a conflict copy of the local content.
        private func makeCopy(on machine: Machine) async throws -> ItemRecord {
            _ = try await machine.read("a")
            machine.provider.change { tree in tree.write(RemoteContent("theirs"), to: "a") }
            try await machine.write("mine", to: "a")
            try await machine.send()
            try await machine.drain()
            return try #require(try machine.replica.database.conflictCopies().first?.item)
        }

        @Test("CONFLICT-3: a remote that shows what was written as something else makes no conflict copy")
        func sameContent() async throws {
            try await Machine.run { machine in
                machine.provider.faults.add(.applyThenFail(FileProviderError(.filenameCollision)), to: .create)
                try await machine.write("mine", to: "file")
                try await machine.drain()
                #expect(machine.provider.tree.entries().mapValues(\.content) == ["file": "mine"])
                #expect(try await machine.names(in: .root) == ["file"])
                #expect(try machine.replica.database.pendingCounts().items == 0)
                #expect(try machine.replica.database.conflictCopies().isEmpty)
                #expect(machine.provider.log.count(of: .create) == 1)
            }
        }

        @Test("CONFLICT-3: a file that had another name for a while, and is written then, makes no conflict copy")
        func linkedForAWhile() async throws {
            try await Machine.run { machine in
                try await machine.write("base", to: "name")
                try await machine.drain()
                try await machine.link("name", as: "other")
                try await machine.drain()
                try await machine.remove("other")
                try await machine.write("written", to: "name")
                try await machine.drain()
                #expect(machine.provider.tree.entries().mapValues(\.content) == ["name": "written"])
                #expect(try machine.replica.database.conflictCopies().isEmpty)
            }
        }

        @Test("CONFLICT-1: a new file makes a conflict copy where its name is that of another in another spelling")
        func otherSpelling() async throws {
            try await Machine.run { machine in
                machine.provider.changeSilently {
                    _ = $0.addFile("file", content: RemoteContent("theirs"), identifier: "theirs")
                }
                let there = try #require(machine.provider.tree["theirs"])
                machine.provider.faults.fail(.create, with: FileProviderError.filenameCollision(with: there))
                try await machine.write("mine", to: "File")
                try await machine.drain()
                #expect(Set(machine.provider.tree.entries().values.map(\.content)) == ["theirs", "mine"])
                #expect(try machine.replica.database.conflictCopies().map(\.original) == ["File"])
                #expect(try await machine.names(in: .root).contains("file"))
                #expect(try machine.replica.database.pendingCounts().items == 0)
            }
        }

        @Test(
            "CONFLICT-2: what another machine writes to one of two names is not overwritten when the other is removed")
        func linkedAndWrittenThere() async throws {
            try await Machine.run { machine in
                try await machine.write("base", to: "name")
                try await machine.drain()
                try await machine.link("name", as: "other")
                try await machine.drain()
                machine.provider.change { tree in
                    if let there = tree.identifier(at: "name") { tree.write(RemoteContent("theirs"), to: there) }
                }
                try await machine.remove("other")
                try await machine.write("ours", to: "name")
                try await machine.drain()
                #expect(
                    Set(machine.provider.tree.entries().values.map(\.content)) == ["theirs", "ours"])
            }
        }

        @Test("CONFLICT-3: where a remote keeps other content than was sent the copies end, with the reason")
        func otherContent() async throws {
            try await Machine.run { machine in
                machine.provider.faults.add(.shouldFetchContent(RemoteContent("spoiled")), to: .create)
                machine.provider.faults.add(.applyThenFail(FileProviderError(.filenameCollision)), to: .create)
                try await machine.write("mine", to: "file")
                for _ in 1...8 {
                    try await machine.send()
                    try await machine.ingest()
                }
                let names = try await machine.names(in: .root)
                // The first name, the first copy, and three more names.
                #expect(names.count == 5, "\(names)")
                #expect(machine.provider.tree.entries().count == 5)
                let copies = try machine.replica.database.conflictCopies()
                #expect(copies.map(\.original) == ["file"])
                let copy = try #require(copies.first?.item)
                #expect(try await machine.read(copy.inode.number) == "mine")
                let pending = try machine.replica.database.pendingItems(after: 0, limit: 9).map(\.item)
                // The time of the directory waits for what is in it.
                #expect(pending.filter { $0.inode.kind == .file }.map(\.id) == [copy.id])
                let failure = try #require(try machine.replica.database.failure(of: copy.inode.number))
                #expect(failure.message.contains("is a conflict copy"), "\(failure.message)")
            }
        }

        @Test(
            "CONFLICT-1: what another machine writes in the same second, with the same size, is kept, as what is written here",
            arguments: [true, false])
        func sameSecond(isNew: Bool) async throws {
            try await Machine.run { machine in
                if !isNew {
                    try await machine.write("base", to: "file")
                    try await machine.drain()
                }
                try await machine.write("mine", to: "file")
                let time = try await machine.record("file").modifiedAt
                machine.provider.changeSilently { tree in
                    let content = RemoteContent("them")
                    let there = tree.identifier(at: "file") ?? tree.addFile("file", content: content)
                    tree.write(content, to: there)
                    tree.edit(there) { $0.contentModificationDate = FileTimestamp(seconds: time.seconds) }
                }
                try await machine.drain()
                #expect(Set(machine.provider.tree.entries().values.map(\.content)) == ["mine", "them"])
            }
        }

        @Test("CONFLICT-3: a conflict copy whose name another machine has given to its own gets another name")
        func copiesOfOthers() async throws {
            try await Machine.run { machine in
                let taken = ["file", "file (conflicted copy)", "file (conflicted copy 2)"]
                machine.provider.changeSilently { tree in
                    for name in taken {
                        _ = tree.addFile(name, content: RemoteContent(name), identifier: ItemIdentifier(name))
                    }
                }
                // A failure of another kind is not a name that is taken.
                machine.provider.faults.add(.fail(FileProviderError(.timedOut)), to: .create, times: 3)
                try await machine.write("mine", to: "file")
                for _ in 1...8 { try await machine.send() }
                try await machine.drain()
                let entries = machine.provider.tree.entries().mapValues(\.content)
                #expect(entries.count == 4 && entries.values.contains("mine"), "\(entries)")
                for name in taken { #expect(entries[name] == name) }
                #expect(try machine.replica.database.pendingCounts().items == 0)
            }
        }

        @Test("CONFLICT-3: a conflict copy that was changed on both sides has a copy of its own, three times at most")
        func copyOfACopy() async throws {
            try await Machine.run(fill: { _ = $0.addFile("a", content: RemoteContent("first"), identifier: "a") }) {
                machine in
                _ = try await machine.read("a")
                machine.provider.changeSilently { $0.write(RemoteContent("theirs"), to: "a") }
                try await machine.write("mine", to: "a")
                try await machine.send()
                try await machine.drain()
                var copy = try #require(try machine.replica.database.conflictCopies().first?.item)
                for number in 1...4 {
                    let identifier = try #require(copy.identifier)
                    machine.provider.changeSilently { $0.write(RemoteContent("theirs \(number)"), to: identifier) }
                    try await machine.write("mine \(number)", to: copy.name)
                    for _ in 1...3 { try await machine.send() }
                    #expect(machine.provider.tree.entries()[copy.name]?.content == "theirs \(number)")
                    guard number < 4 else { break }
                    let next = try #require(try machine.replica.database.conflictCopies().last?.item)
                    #expect(try await machine.read(copy.name) == "theirs \(number)")
                    #expect(machine.provider.tree.entries()[next.name]?.content == "mine \(number)")
                    #expect(try machine.replica.database.pendingCounts().items == 0)
                    copy = next
                }
                #expect(try await machine.read(copy.name) == "mine 4")
                let failure = try #require(try machine.replica.database.failure(of: copy.inode.number))
                #expect(failure.message.contains("is a conflict copy"), "\(failure.message)")
                #expect(try machine.replica.database.pendingCounts().items == 1)
            }
        }

        @Test("CONFLICT-1: a file of the same size and date that appears while another is sent is not overwritten")
        func appearsMeanwhile() async throws {
            try await Machine.run { machine in
                let date = FileTimestamp(seconds: 1_000_000_000)
                try await machine.write("mine!", to: "file")
                try await machine.setTime(of: "file", to: date)
                let gate = machine.provider.faults.hold(.create)
                let sending = Task { try await machine.send() }
                #expect(await eventually { gate.waiting == 1 })
                machine.provider.change { tree in
                    let identifier = tree.addFile("file", content: RemoteContent("their"))
                    tree.edit(identifier) { $0.contentModificationDate = date }
                }
                let ingesting = Task { try await machine.ingest() }
                try await Task.sleep(for: .milliseconds(200))
                gate.open()
                try await sending.value
                try await ingesting.value
                try await machine.drain()
                let contents = machine.provider.tree.entries().values.map(\.content)
                #expect(Set(contents) == ["mine!", "their"])
                #expect(try machine.replica.database.conflictCopies().count == 1)
            }
        }

        @Test(
            "CONFLICT-1: what is written here while others' bytes replace those that were sent is kept beside them",
            arguments: ["a", "new"])
        func replacedWhileItIsWritten(path: String) async throws {
            try await Machine.run(fill: { tree in
                if path == "a" { tree.addFile("a", content: RemoteContent("first"), identifier: "a") }
            }) { machine in
                let kind: ProviderCallKind = path == "a" ? .modify : .create
                machine.provider.faults.add(.shouldFetchContent(RemoteContent("theirs")), to: kind, times: 1)
                try await machine.write("11111111", to: path, thenWhileItIsSent: "22222222", by: kind)
                let contents = machine.provider.tree.entries().values.map(\.content)
                #expect(Set(contents) == ["theirs", "22222222"])
                #expect(try await machine.read(path) == "theirs")
                #expect(try machine.replica.database.conflictCopies().count == 1)
                #expect(try await machine.complaints() == [])
            }
        }

        @Test("SEND-15: others' bytes in place of those that were sent are shown", arguments: ["a", "renamed"])
        func replacedWhileItIsChanged(path: String) async throws {
            try await Machine.run(fill: { _ = $0.addFile("a", content: RemoteContent("first"), identifier: "a") }) {
                machine in
                let gate = machine.provider.faults.hold(.modify, of: "a", times: 1)
                machine.provider.faults.add(.shouldFetchContent(RemoteContent("theirs")), to: .modify, times: 1)
                try await machine.write("ours", to: "a")
                let sending = Task { try await machine.send(passes: 1) }
                #expect(await eventually { gate.waiting == 1 })
                if path == "a" {
                    try await machine.setPermissions(of: "a", to: 0o600)
                } else {
                    try await machine.rename("a", to: path)
                }
                gate.open()
                try await sending.value
                try await machine.drain()
                #expect(try await machine.read(path) == "theirs")
                #expect(machine.provider.tree.entries().mapValues(\.content) == [path: "theirs"])
                #expect(try await machine.complaints() == [])
            }
        }

        @Test("CONFLICT-3: a conflict copy that has got the name of its original is none any more")
        func renamedToOriginal() async throws {
            try await Machine.run(fill: { _ = $0.addFile("a", content: RemoteContent("first"), identifier: "a") }) {
                machine in
                let copy = try await makeCopy(on: machine)
                try await machine.rename(copy.name, to: "a")
                try await machine.send()
                try await machine.drain()
                #expect(try machine.replica.database.pendingCounts().items == 0)
                #expect(try await machine.read("a") == "mine")
                let identifier = try #require(copy.identifier)
                machine.provider.change { tree in tree.write(RemoteContent("theirs again"), to: identifier) }
                try await machine.write("mine again", to: "a")
                try await machine.send()
                try await machine.drain()
                #expect(try machine.replica.database.pendingCounts().items == 0)
                let contents = machine.provider.tree.entries().values.map(\.content)
                #expect(Set(contents) == ["mine again", "theirs again"])
            }
        }

        @Test(
            "CONFLICT-1: a conflict copy that was moved to another directory, here or on the remote, is none any more",
            arguments: [true, false])
        func movedElsewhere(isMovedHere: Bool) async throws {
            try await Machine.run(fill: { tree in
                tree.addFile("a", content: RemoteContent("first"), identifier: "a")
                tree.addDirectory("other", identifier: "other")
                tree.addFile("a", in: "other", content: RemoteContent("unrelated"), identifier: "unrelated")
            }) { machine in
                let copy = try await makeCopy(on: machine)
                #expect(try machine.replica.database.originalName(ofConflictCopy: copy) == "a")
                if isMovedHere {
                    try await machine.rename(copy.name, to: "other/" + copy.name)
                } else {
                    let identifier = try #require(copy.identifier)
                    machine.provider.change { $0.move(identifier, to: "other") }
                }
                try await machine.drain()
                let moved = try await machine.item("other/" + copy.name)
                #expect(moved.id == copy.id)
                #expect(try await machine.read("other/" + copy.name) == "mine")
                #expect(try machine.replica.database.conflictCopies().isEmpty)
                #expect(try machine.replica.database.originalName(ofConflictCopy: moved) == nil)
                // Nor is it one when it comes back.
                try await machine.rename("other/" + copy.name, to: copy.name)
                try await machine.drain()
                #expect(try machine.replica.database.conflictCopies().isEmpty)
            }
        }

        @Test("CONFLICT-1: a conflict copy in the trash, or with the name of its original, is listed no more")
        func listedNoMore() async throws {
            for isTrashed in [true, false] {
                try await Machine.run(
                    options: .with(\.trash, true),
                    fill: { _ = $0.addFile("a", content: RemoteContent("first"), identifier: "a") }
                ) { machine in
                    let copy = try await makeCopy(on: machine)
                    #expect(try machine.replica.database.originalName(ofConflictCopy: copy) == "a")
                    if isTrashed {
                        let identifier = try #require(copy.identifier)
                        try await machine.change { _ = try $0.items.trash(identifier, user: 0, group: 0) }
                    } else {
                        try await machine.rename(copy.name, to: "a")
                    }
                    #expect(try machine.replica.database.conflictCopies().isEmpty)
                    try await machine.drain()
                    #expect(try machine.replica.database.conflictCopies().isEmpty)
                    let contents = Set(machine.provider.tree.entries().values.compactMap(\.content))
                    #expect(contents.contains("mine") == !isTrashed)
                }
            }
        }

        @Test("a comparison of contents ends with the first difference")
        func comparedOnce() async throws {
            try await Machine.run { machine in
                try await machine.write("mine", to: "file")
                machine.provider.changeSilently {
                    _ = $0.addFile("file", content: RemoteContent("them"), identifier: "theirs")
                }
                try await machine.send(passes: 1)
                // The other one is for the digest of what was sent.
                #expect(machine.provider.log.count(of: .fetch) <= 2)
                try await machine.drain()
                #expect(Set(machine.provider.tree.entries().values.map(\.content)) == ["mine", "them"])
            }
        }

        @Test(
            "CONFLICT-3: what both sides wrote alike is no conflict, also if the comparison is interrupted once",
            arguments: [false, true])
        func alike(isInterrupted: Bool) async throws {
            try await Machine.run(
                options: .with(\.recognizesEqualUploads, false),
                fill: { _ = $0.addFile("a", content: RemoteContent("first"), identifier: "a") }
            ) { machine in
                _ = try await machine.read("a")
                machine.provider.changeSilently { tree in
                    tree.write(RemoteContent("both alike"), to: "a")
                    _ = tree.addFile("new", content: RemoteContent("new alike"), identifier: "new")
                }
                if isInterrupted {
                    machine.provider.faults.add(
                        .failTransfer(after: 3, FileProviderError(.providerDomainTemporarilyUnavailable)), to: .fetch,
                        times: 1)
                }
                try await machine.write("both alike", to: "a")
                try await machine.write("new alike", to: "new")
                try await machine.send()
                try await machine.drain()
                #expect(try await machine.names(in: .root).sorted() == ["a", "new"])
                #expect(machine.provider.tree.entries().count == 2)
                #expect(try machine.replica.database.pendingCounts().items == 0)
            }
        }
    }
}
