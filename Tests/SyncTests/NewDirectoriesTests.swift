import FileProvider
import FileProviderTesting
import Replica
import Testing

@testable import Sync

extension EngineTests {
    /// Directories that are new while items are missing elsewhere, of a remote without a change feed that gives what was moved other
    /// identifiers.
    @Suite struct NewDirectoriesTests {
        /// A remote with files in a directory, and others beside it.
        private func run(files: Int, others: Int, _ test: (Machine) async throws -> Void) async throws {
            try await Machine.run(options: .with(\.changeFeed, false)) { tree in
                tree.addDirectory("doc", identifier: "doc")
                for number in 0..<files { tree.addFile("f\(number)", in: "doc", content: RemoteContent("\(number)")) }
                for number in 0..<others { tree.addFile("o\(number)", content: RemoteContent("\(number)")) }
            } _: { machine async throws in
                try await test(machine)
            }
        }

        /// Files get another directory and other identifiers, and as a rule keep their dates.
        private func move(
            _ numbers: Range<Int>, from old: ItemIdentifier, to new: ItemIdentifier, in tree: inout RemoteTree,
            keepingDates: Bool = true
        ) {
            for number in numbers {
                guard let file = tree.items(in: old).first(where: { $0.filename == "f\(number)" }) else { continue }
                tree.delete(file.itemIdentifier)
                let added = tree.addFile("f\(number)", in: new, content: RemoteContent("\(number)"))
                if keepingDates { tree.edit(added) { $0.contentModificationDate = file.contentModificationDate } }
            }
        }

        @Test(
            "CHANGE-4: what is in a new directory with its name, size and date is not missing",
            arguments: [true, false])
        func foundElsewhere(keepingDates: Bool) async throws {
            try await run(files: 150, others: 0) { machine in
                machine.provider.changeSilently { tree in
                    tree.addDirectory("q", identifier: "q")
                    tree.addDirectory("below", in: "q", identifier: "below")
                    move(0..<10, from: "doc", to: "q", in: &tree, keepingDates: keepingDates)
                    move(10..<150, from: "doc", to: "below", in: &tree, keepingDates: keepingDates)
                }
                try await machine.ingest()
                #expect(machine.engine.warnings.texts.isEmpty == keepingDates)
                let left = try await machine.names(in: machine.number("doc")).count
                #expect(left == (keepingDates ? 0 : 150))
                #expect(try await machine.names(in: machine.number("q/below")).count == 140)
            }
        }

        @Test("CHANGE-4: one file elsewhere stands for one that is missing") func oneForOne() async throws {
            try await run(files: 150, others: 0) { machine in
                machine.provider.changeSilently { tree in
                    tree.addDirectory("q", identifier: "q")
                    move(0..<40, from: "doc", to: "q", in: &tree)
                    let files = tree.items(in: "doc")
                    for file in files { tree.delete(file.itemIdentifier) }
                }
                try await machine.ingest()
                #expect(machine.engine.warnings.texts.contains { $0.hasPrefix("110 of 152 items have vanished") })
                #expect(try await machine.names(in: machine.number("doc")).count == 150)
            }
        }

        @Test(
            "CHANGE-4: a copy is not where a missing file has moved",
            arguments: ["made here", "listed later", "listed together", "listed after an eviction"])
        func copies(how: String) async throws {
            try await run(files: 150, others: 0) { machine in
                let files = machine.provider.tree.items(in: "doc")
                func copy(to directory: ItemIdentifier) {
                    machine.provider.changeSilently { tree in
                        if tree.identifier(at: directory.rawValue) == nil {
                            tree.addDirectory(directory.rawValue, identifier: directory)
                        }
                        for file in files {
                            let content = RemoteContent(String(file.filename.dropFirst()))
                            let added = tree.addFile(file.filename, in: directory, content: content)
                            tree.edit(added) { $0.contentModificationDate = file.contentModificationDate }
                        }
                    }
                }
                var missing: ItemIdentifier = "doc"
                switch how {
                case "made here":
                    try await machine.makeDirectory("copies")
                    for file in files {
                        let path = "copies/\(file.filename)"
                        try await machine.write(String(file.filename.dropFirst()), to: path)
                        try await machine.setTime(of: path, to: #require(file.contentModificationDate))
                    }
                    try await machine.send()
                    #expect(machine.provider.tree.entries().count == 302)
                case "listed later":
                    copy(to: "copies")
                    // The new directory is not listed yet.
                    try await machine.ingest()
                case "listed after an eviction":
                    machine.provider.changeSilently { tree in
                        tree.addDirectory("copies", identifier: "copies")
                        tree.addFile("before", in: "copies", content: RemoteContent("before"))
                    }
                    try await machine.ingest()
                    try await machine.listAll()
                    try await machine.ingest()
                    let copies = try await machine.number("copies")
                    #expect(try await machine.engine.evict(copies, isStrict: true).refusals.isEmpty)
                    #expect(try await machine.item("copies").inode.content == .dataless)
                    copy(to: "copies")
                    try await machine.ingest()
                    try await machine.listAll()
                default:
                    for directory: ItemIdentifier in ["other", "copies"] { copy(to: directory) }
                    try await machine.ingest()
                    try await machine.listAll()
                    missing = "other"
                }
                machine.provider.changeSilently { tree in
                    for file in tree.items(in: missing) { tree.delete(file.itemIdentifier) }
                }
                try await machine.ingest()
                #expect(machine.engine.warnings.texts.contains { $0.hasPrefix("150 of ") })
                #expect(try await machine.names(in: machine.number(missing.rawValue)).count == 150)
            }
        }

        @Test("nothing is removed in a round in which a new directory cannot be listed") func failingListing()
            async throws
        {
            try await run(files: 20, others: 100) { machine in
                let inode = try await machine.number("doc/f3")
                machine.provider.changeSilently { tree in
                    tree.addDirectory("q", identifier: "q")
                    move(0..<20, from: "doc", to: "q", in: &tree)
                }
                machine.provider.faults.add(.fail(FileProviderError(.timedOut)), to: .enumerate, of: "q", times: 1)
                await #expect(throws: (any Error).self) { try await machine.ingest() }
                #expect(try await machine.number("doc/f3") == inode)
                // It is not tried again for that.
                try await machine.ingest()
                #expect(try await machine.item("q").inode.content == .dataless)
                #expect(await !machine.exists("doc/f3"))
                #expect(try await machine.names(in: machine.number("q")).count == 20)
            }
        }

        @Test("new directories are listed only while items are missing, and no more directories than items")
        func bounded() async throws {
            try await run(files: 2, others: 0) { machine in
                machine.provider.changeSilently { $0.addDirectory("q", identifier: "q") }
                try await machine.ingest()
                #expect(try await machine.item("q").inode.content == .dataless)
                machine.provider.changeSilently { tree in
                    for file in tree.items(in: "doc") { tree.delete(file.itemIdentifier) }
                    for number in 0..<3 { tree.addDirectory("r\(number)", identifier: ItemIdentifier("r\(number)")) }
                }
                try await machine.ingest()
                var listed = 0
                for name in ["q", "r0", "r1", "r2"] {
                    if try await machine.item(name).inode.content == .materialized { listed += 1 }
                }
                #expect(listed == 2)
            }
        }
    }
}
