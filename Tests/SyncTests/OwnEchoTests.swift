import FileProvider
import FileProviderTesting
import Replica
import Testing

@testable import Sync

extension EngineTests {
    /// What is reported of conflicts, losses and odd items: each in its own words.
    @Suite struct OwnEchoTests {
        private static let formerWords = "the provider gave something"

        @Test("Issue 14, 3.17: a conflict of contents is reported as that") func conflictOfContents() async throws {
            try await Machine.run(fill: { $0.addFile("a", content: RemoteContent("first"), identifier: "a") }) {
                machine in
                try await machine.write("here", to: "a")
                machine.provider.change { $0.write(RemoteContent("there"), to: "a") }
                try await machine.drain()
                let texts = machine.engine.warnings.texts
                let words = "conflict: 'a' was changed here and on the remote: what was written here is"
                #expect(texts.contains { $0.hasPrefix(words) }, "\(texts)")
                #expect(try machine.engine.currentWarnings() == texts)
                try await machine.remove("a (conflicted copy)")
                #expect(try machine.engine.currentWarnings() == [])
                #expect(!texts.contains { $0.contains(Self.formerWords) || $0.contains("cannot be shown") }, "\(texts)")
            }
        }

        @Test("Issue 14, 3.17: two new files of one name are reported as a conflict")
        func conflictOfNames() async throws {
            try await Machine.run { machine in
                try await machine.write("here", to: "n")
                machine.provider.change { $0.addFile("n", content: RemoteContent("there"), identifier: "n") }
                try await machine.drain()
                let texts = machine.engine.warnings.texts
                #expect(texts.contains { $0.hasPrefix("conflict: 'n' was made here and on the remote") }, "\(texts)")
                #expect(!texts.contains { $0.contains("cannot be shown") }, "\(texts)")
            }
        }

        @Test("ERROR-8: a file changed here and replaced on the remote is reported as that until its copy is made")
        func replacedFile() async throws {
            try await Machine.run(fill: { $0.addFile("a", content: RemoteContent("first"), identifier: "a") }) {
                machine in
                try await machine.write("here", to: "a")
                machine.provider.change {
                    $0.delete("a")
                    $0.addFile("a", content: RemoteContent("there"), identifier: "b")
                }
                try await machine.ingest()
                let words = "'a' was changed here while the remote put another item in its place"
                let reported = machine.engine.warnings.texts
                #expect(reported.contains { $0.hasPrefix(words) }, "\(reported)")
                #expect(!reported.contains { $0.contains("two items are called") }, "\(reported)")
                try await machine.drain()
                let texts = try machine.engine.currentWarnings()
                #expect(texts.contains { $0.hasPrefix("conflict: 'a' was made here and on the remote") }, "\(texts)")
                #expect(!texts.contains { $0.hasPrefix(words) }, "\(texts)")
                #expect(try await machine.read("a") == "there")
                #expect(try await machine.read("a (conflicted copy)") == "here")
            }
        }

        @Test(
            "NAME-7: the warning about a name that another item has ends when it is removed there or renamed here",
            arguments: [false, true])
        func decoratedNames(isRenamedHere: Bool) async throws {
            try await Machine.run(
                fill: { tree in
                    tree.addFile("f", content: RemoteContent("first"), identifier: "f")
                    tree.addDirectory("d", identifier: "d")
                },
                { machine in
                    try await machine.write("here", to: "f")
                    try await machine.write("new", to: "d/b")
                    machine.provider.change { $0.move("f", to: "d", as: "b") }
                    try await machine.ingest()
                    let words = "'b' was changed here while the remote put another item in its place"
                    let reported = try machine.engine.currentWarnings()
                    #expect(reported.contains { $0.hasPrefix(words) }, "\(reported)")
                    if isRenamedHere {
                        try await machine.rename("d/b (2)", to: "mine")
                    } else {
                        machine.provider.change { $0.delete("f") }
                        try await machine.ingest()
                        #expect(await machine.exists("d/b (2)"))
                    }
                    let texts = try machine.engine.currentWarnings()
                    #expect(!texts.contains { $0.hasPrefix(words) }, "\(texts)")
                })
        }

        @Test("CONFLICT-8: the warning names the path, and says that the remote has changed the file")
        func pathsInWarnings() async throws {
            try await Machine.run(
                fill: { tree in
                    tree.addDirectory("d", identifier: "d")
                    tree.addFile("x", in: "d", content: RemoteContent("first"), identifier: "x")
                },
                { machine in
                    try await machine.write("here", to: "d/n")
                    machine.provider.change {
                        _ = $0.addFile("n", in: "d", content: RemoteContent("there"), identifier: "n")
                    }
                    try await machine.drain()
                    try await machine.remove("d/x")
                    machine.provider.changeSilently { $0.write(RemoteContent("there"), to: "x") }
                    try await machine.send()
                    let texts = machine.engine.warnings.texts
                    let conflict = "conflict: 'd/n' was made here and on the remote"
                    #expect(texts.contains { $0.hasPrefix(conflict) }, "\(texts)")
                    let words = "'d/x' was removed here and stays on the remote: it has changed there"
                    #expect(texts.contains(words), "\(texts)")
                })
        }

        @Test("CONFLICT-8: the warning has the path that the item has got since")
        func warningsOfDeletionsMove() async throws {
            try await Machine.run(
                fill: { tree in
                    tree.addDirectory("d", identifier: "d")
                    tree.addFile("x", content: RemoteContent("first"), identifier: "x")
                },
                { machine in
                    try await machine.remove("x")
                    machine.provider.changeSilently { $0.write(RemoteContent("there"), to: "x") }
                    try await machine.send()
                    let words = "was removed here and stays on the remote: it has changed there"
                    #expect(try machine.engine.currentWarnings() == ["'x' \(words)"])
                    machine.provider.change { $0.move("x", to: "d", as: "y") }
                    try await machine.ingest()
                    #expect(await machine.exists("d/y"))
                    #expect(try machine.engine.currentWarnings() == ["'d/y' \(words)"])
                    try await machine.rename("d", to: "e")
                    #expect(try machine.engine.currentWarnings() == ["'e/y' \(words)"])
                    machine.provider.change { $0.delete("x") }
                    try await machine.drain()
                    #expect(try machine.engine.currentWarnings() == [])
                })
        }

        @Test("CONFLICT-8: the warning ends when the item is removed again", arguments: [false, true])
        func warningsOfDeletionsEnd(isRemovedHere: Bool) async throws {
            try await Machine.run(fill: { $0.addFile("x", content: RemoteContent("first"), identifier: "x") }) {
                machine in
                try await machine.remove("x")
                machine.provider.changeSilently { $0.write(RemoteContent("there"), to: "x") }
                try await machine.send()
                let words = "'x' was removed here and stays on the remote: it has changed there"
                #expect(try machine.engine.currentWarnings() == [words])
                #expect(try await machine.read("x") == "there")
                #expect(try machine.engine.currentWarnings() == [words])
                if isRemovedHere {
                    try await machine.remove("x")
                } else {
                    machine.provider.change { $0.delete("x") }
                    try await machine.drain()
                }
                #expect(try machine.engine.currentWarnings() == [])
                try await machine.drain()
                #expect(machine.provider.tree.identifier(at: "x") == nil)
                #expect(try machine.engine.currentWarnings() == [])
            }
        }

        @Test("Issue 14, 3.17: what is lost in a reimport is reported as lost") func lossInAReimport() async throws {
            try await Machine.run(fill: { $0.addFile("a", content: RemoteContent("first"), identifier: "a") }) {
                machine in
                machine.provider.change { $0.delete("a") }
                try await machine.engine.reimport(below: .root)
                await machine.engine.continueReimport()
                try await machine.drain()
                await machine.engine.continueReimport()
                let texts = machine.engine.warnings.texts
                #expect(texts.contains { $0.hasPrefix("lost in the reimport: 'a' is not on the remote") }, "\(texts)")
                #expect(!texts.contains { $0.contains("cannot be shown") }, "\(texts)")
            }
        }

        @Test("Issue 14, 3.17: only an item that cannot be shown is reported as one")
        func onlyHiddenItemsAreReportedAsHidden() async throws {
            try await EngineFixture.run(fill: { tree in
                tree.addFile("a/b", content: RemoteContent("odd"), identifier: "odd")
                tree.addFile("same", content: RemoteContent("1"), identifier: "1")
                tree.addFile("same", content: RemoteContent("2"), identifier: "2")
            }) { fixture in
                try await fixture.list()
                let texts = fixture.engine.warnings.texts
                let words = "the remote has an item that cannot be shown: 'a/b' (odd)"
                #expect(texts.contains { $0.hasPrefix(words) }, "\(texts)")
                #expect(texts.contains { $0.hasPrefix("two items are called 'same' on the remote") }, "\(texts)")
                #expect(texts.filter { $0.contains("cannot be shown") }.count == 1, "\(texts)")
            }
        }
    }
}
