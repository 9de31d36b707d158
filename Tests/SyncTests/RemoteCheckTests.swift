import FileProvider
import FileProviderTesting
import Testing

@testable import Replica
@testable import Sync

extension EngineTests {
    /// A check's comparison with the remote.
    @Suite struct RemoteCheckTests {
        private static func fill(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            tree.addFile("x", in: "d", content: RemoteContent("first"), identifier: "x")
        }

        private func check(_ machine: Machine, isRepairing: Bool = false) async throws -> [CheckFinding] {
            try await machine.engine.compareWithRemote(comparesBytes: false, isRepairing: isRepairing).findings
        }

        @Test("CHECK-1: an item of the remote's that stays without a name is found, and shown after a repair")
        func isNotShown() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                let row = try await machine.item("d/x").id
                try await machine.replica.database.write { db in try db.displace(row) }
                let found = try await check(machine)
                #expect(found.map(\.text) == ["it is not shown here"])
                #expect(found.map(\.name) == ["x"])
                let mended = try await check(machine, isRepairing: true)
                #expect(!mended.isEmpty && mended.allSatisfy(\.isMended), "\(mended)")
                #expect(try await machine.item("d/x").id == row)
                #expect(try await check(machine) == [])
            }
        }

        @Test(
            "CHECK-1: what the remote has under the name of something that was made here is no difference",
            arguments: [false, true])
        func madeHere(isRepairing: Bool) async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await machine.write("here", to: "d/n")
                machine.provider.change {
                    _ = $0.addFile("n", in: "d", content: RemoteContent("there"), identifier: "n")
                }
                #expect(try await check(machine, isRepairing: isRepairing) == [])
                #expect(try machine.replica.database.item(ItemIdentifier("n")) == nil)
                try await machine.drain()
                #expect(try await check(machine) == [])
                #expect(try machine.replica.database.item(ItemIdentifier("n")) != nil)
            }
        }

        @Test("NAME-6: a name that is not UTF-8 where the provider has none is reported, and no difference")
        func nameThatIsNotUTF8() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try machine.replica.ignore(IgnoredNames([], sendsByteNames: false))
                machine.provider.change {
                    _ = $0.addFile("n\u{10FFFF}", in: "d", content: RemoteContent("there"), identifier: "n")
                }
                try await machine.ingest()
                #expect(try machine.replica.database.item(ItemIdentifier("n")) == nil)
                let texts = machine.engine.warnings.texts
                #expect(texts.contains { $0.contains("cannot be shown: 'n\u{10FFFF}'") }, "\(texts)")
                #expect(texts.contains { $0.contains("name that is not UTF-8") }, "\(texts)")
                #expect(try await check(machine) == [])
            }
        }

        @Test("CHECK-1: an item that is not known here is found under its path") func isNotKnown() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                let item = try await machine.item("d/x")
                try await machine.replica.database.write { db in
                    try db.deleteItem(item)
                    try db.run("DELETE FROM inode WHERE number = ?", [item.inode.number.rawValue])
                }
                let found = try await check(machine)
                #expect(found.map(\.text) == ["the remote has it, and it is not known here"])
                #expect(found.map(\.name) == ["d/x"])
                let mended = try await check(machine, isRepairing: true)
                #expect(!mended.isEmpty && mended.allSatisfy(\.isMended), "\(mended)")
                #expect(await machine.exists("d/x"))
            }
        }

        private func difference(
            _ identifier: ItemIdentifier, _ version: String?, named name: String = "f"
        ) -> RemoteDifference {
            let remote = version.map { version in
                FileProviderItem(
                    itemIdentifier: identifier, parentItemIdentifier: .rootContainer, filename: name, kind: .file,
                    itemVersion: ItemVersion(contentVersion: version, metadataVersion: version))
            }
            return RemoteDifference(identifier: identifier, remote: remote, finding: CheckFinding(.remote, "differs"))
        }

        @Test("CHECK-1: what has changed on the remote between two listings is no difference") func changedMeanwhile() {
            let earlier = [
                difference("same", "1"), difference("written", "1"), difference("renamed", "1"),
                difference("gone", "1"), difference("missing", nil), difference("back", nil),
            ]
            let later = [
                difference("same", "1"), difference("written", "2"), difference("renamed", "1", named: "g"),
                difference("gone", nil), difference("missing", nil), difference("back", "1"), difference("new", "1"),
            ]
            #expect(later.lasting(since: earlier).map(\.identifier) == ["same", "missing"])
        }
    }
}
