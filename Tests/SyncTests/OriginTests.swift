import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// What is written here is based on what was here when it was written, whatever the remote has told since.
    @Suite struct OriginTests {
        private func fill(_ tree: inout RemoteTree) { ScriptRun.fill(&tree) }

        /// The remote's `a` is rewritten and heard of while somebody here has the old one open.
        private func expectBothAreKept(
            openForWriting: Bool = false, write: (Machine, InodeNumber) async throws -> Void
        ) async throws {
            try await Machine.run(fill: fill) { machine in
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

        @Test("S190: what was opened for writing before news came is not written over them")
        func whatIsOpenForWritingIsBasedOnWhatWasOpened() async throws {
            try await expectBothAreKept(openForWriting: true) { machine, number in
                try machine.put("ours", into: number)
                try await machine.close(number)
            }
        }

        @Test("S190: what is written while a reader keeps the old content is based on that")
        func whatIsWrittenBesideAReaderIsBasedOnWhatHeReads() async throws {
            try await expectBothAreKept { machine, number in
                try await machine.beginWriting(number)
                try machine.put("ours", into: number)
                try await machine.close(number)
            }
        }

        @Test("S190: an atomic save over what a reader has open is based on what he reads")
        func anAtomicSaveIsBasedOnWhatItReplaces() async throws {
            try await expectBothAreKept { machine, number in
                try await machine.write("ours", to: "a.new")
                try await machine.rename("a.new", to: "a")
                try await machine.close(number)
            }
        }

        @Test("S190: who truncates what a reader has open of an older version does not overwrite the newer one")
        func truncatingIsBasedOnWhatWasThere() async throws {
            try await expectBothAreKept { machine, _ in try await machine.write("ours", to: "a") }
        }
    }
}
