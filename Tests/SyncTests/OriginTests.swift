import FileProvider
import FileProviderTesting
import Replica
import Testing

extension EngineTests {
    /// What is written here is based on what was here when it was written, whatever the remote has told since.
    @Suite struct OriginTests {
        /// The remote's `a` is rewritten, and the change is ingested while a process has the old version open.
        private func expectBothAreKept(
            openForWriting: Bool = false, write: (Machine, InodeNumber) async throws -> Void
        ) async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                _ = try await machine.read("a")
                let number = try await machine.number("a")
                if openForWriting { try await machine.beginWriting(number) }
                machine.open.insert(number)
                machine.provider.change { $0.write(RemoteContent("theirs, and longer"), to: "a") }
                try await machine.ingest()
                #expect(try machine.replica.database.inode(number)?.size == 7)
                try await write(machine, number)
                try await machine.drain()
                let contents = machine.provider.tree.entries().values.compactMap(\.content)
                #expect(contents.contains("theirs, and longer"), "what the remote had is lost: \(contents)")
                #expect(contents.contains { $0.hasPrefix("ours") }, "what was written here is lost: \(contents)")
                #expect(try await machine.complaints() == [])
            }
        }

        @Test("CONFLICT-5: what was opened for writing before news came is not written over them")
        func writeIsBasedOnOpenedVersion() async throws {
            try await expectBothAreKept(openForWriting: true) { machine, number in
                try machine.put("ours", into: number)
                try await machine.close(number)
            }
        }

        @Test("CONFLICT-5: what is written while a reader keeps the old content is based on that")
        func writeBesideReaderIsBasedOnVersionOfReader() async throws {
            try await expectBothAreKept { machine, number in
                try await machine.beginWriting(number)
                try machine.put("ours", into: number)
                try await machine.close(number)
            }
        }

        /// The remote's `a` is rewritten and heard of while a reader has the old one open, and then written here by name.
        private func expectNoConflict(write: (Machine) async throws -> Void) async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                _ = try await machine.read("a")
                let old = try await machine.number("a")
                machine.open.insert(old)
                machine.provider.change { $0.write(RemoteContent("theirs, and longer"), to: "a") }
                try await machine.ingest()
                #expect(try await machine.read("a") == "theirs, and longer")
                #expect(try await machine.read(old).count == 7)
                try await write(machine)
                try await machine.close(old)
                try await machine.drain()
                let entries = machine.provider.tree.entries()
                #expect(entries["a"]?.content == "ours")
                #expect(!entries.keys.contains { $0.contains("conflicted copy") })
                #expect(try await machine.complaints() == [])
            }
        }

        @Test(
            "CONFLICT-5: an atomic save beside a reader of an old version is based on the new one, which the mount shows"
        )
        func atomicSaveIsBasedOnReplacedVersion() async throws {
            try await expectNoConflict { machine in
                try await machine.write("ours", to: "a.new")
                try await machine.rename("a.new", to: "a")
            }
        }

        @Test("CONFLICT-5: so is truncating it by its name")
        func truncationIsBasedOnPreviousVersion() async throws {
            try await expectNoConflict { machine in try await machine.write("ours", to: "a") }
        }
    }
}
