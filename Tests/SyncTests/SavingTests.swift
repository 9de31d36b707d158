import FileProvider
import FileProviderTesting
import Replica
import Testing

@testable import Sync

extension EngineTests {
    /// Programs save by renaming a new file over the old one.
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
    }
}
