import Daemon
import FileProvider
import FileProviderTesting
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What an item's capabilities do not allow fails on the system call, for root, too, and the remote hears nothing of it.
    @Suite struct Capabilities {
        /// A line of shell with `$1` for the mount, which has to be refused with these words for want of a capability, and
        /// to work with it.
        struct Case: CustomTestStringConvertible, Sendable {
            var name: String
            var capability: ItemCapabilities
            var item: ItemIdentifier
            var line: String
            var words: String

            var testDescription: String { name }
        }

        static let denied = "Permission denied"
        static let forbidden = "Operation not permitted"

        static let cases = [
            Case(name: "reading", capability: .allowsReading, item: "file", line: "cat \"$1/file\"", words: denied),
            Case(
                name: "reading and writing", capability: .allowsReading, item: "file", line: "exec 3<>\"$1/file\"",
                words: denied),
            Case(
                name: "listing", capability: .allowsContentEnumerating, item: "d", line: "ls \"$1/d\"", words: denied),
            Case(
                name: "writing", capability: .allowsWriting, item: "file", line: "echo x >> \"$1/file\"", words: denied),
            Case(
                name: "truncating on opening", capability: .allowsWriting, item: "file", line: ": > \"$1/file\"",
                words: denied),
            Case(
                name: "truncating", capability: .allowsWriting, item: "file", line: "truncate -s 1 \"$1/file\"",
                words: denied),
            Case(
                name: "changing the mode", capability: .allowsWriting, item: "file", line: "chmod 600 \"$1/file\"",
                words: forbidden),
            Case(
                name: "setting an attribute", capability: .allowsWriting, item: "file",
                line: "setfattr -n user.x -v y \"$1/file\"", words: forbidden),
            Case(
                name: "adding a file", capability: .allowsAddingSubItems, item: "d", line: "touch \"$1/d/new\"",
                words: denied),
            Case(
                name: "adding a directory", capability: .allowsAddingSubItems, item: "d", line: "mkdir \"$1/d/new\"",
                words: denied),
            Case(
                name: "adding a link", capability: .allowsAddingSubItems, item: "d", line: "ln -s x \"$1/d/new\"",
                words: denied),
            Case(
                name: "moving into", capability: .allowsAddingSubItems, item: "d", line: "mv \"$1/file\" \"$1/d\"",
                words: denied),
            Case(
                name: "renaming", capability: .allowsRenaming, item: "file", line: "mv \"$1/file\" \"$1/other\"",
                words: forbidden),
            Case(
                name: "reparenting", capability: .allowsReparenting, item: "file", line: "mv \"$1/file\" \"$1/d\"",
                words: forbidden),
            Case(
                name: "deleting", capability: .allowsDeleting, item: "file", line: "rm -f \"$1/file\"",
                words: forbidden),
            Case(
                name: "deleting a directory", capability: .allowsDeleting, item: "empty", line: "rmdir \"$1/empty\"",
                words: forbidden),
            Case(
                name: "trashing", capability: .allowsTrashing, item: "file",
                line: "mkdir -p -m 700 \"$1/.Trash-$UID/files\" && mv \"$1/file\" \"$1/.Trash-$UID/files/\"",
                words: denied),
        ]

        @Test("WRITE-17: what a capability does not allow fails on the system call", arguments: cases)
        func isEnforced(on test: Case) async throws {
            try await ProvidedMount.run(options: .with(\.trash, true)) { tree in
                tree.addFile("file", content: RemoteContent("text"), identifier: "file")
                tree.addDirectory("d", identifier: "d")
                tree.addDirectory("empty", identifier: "empty")
                for identifier in ["file", "d", "empty"] as [ItemIdentifier] {
                    tree.edit(identifier) { $0.capabilities = [.ordinary, .allowsTrashing] }
                }
                tree.edit(test.item) { $0.capabilities.remove(test.capability) }
            } _: { mount async throws in
                _ = try await Command.run("ls", "-a", mount.path.string)
                let before = mount.provider.tree[test.item]
                mount.provider.log.clear()
                let refused = try await bash(test.line, mount)
                #expect(refused.status != 0)
                #expect(refused.errors.contains(test.words), "\(refused.errors)")
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(mount.provider.tree[test.item] == before)
                // The root may have another date: the directory of the trash was made in it.
                let kinds: Set<ProviderCallKind> = [.fetch, .create, .modify, .delete]
                let asked = mount.provider.log.calls.filter {
                    kinds.contains($0.kind) && $0.identifier != .rootContainer
                }
                #expect(asked.isEmpty, "\(asked)")
                // With the capability it works: that was the reason.
                mount.provider.change { $0.edit(test.item) { $0.capabilities.insert(test.capability) } }
                #expect(
                    await eventually {
                        (try? mount.host.item(for: test.item))?.capabilities.contains(test.capability) == true
                    })
                try await bash(test.line, mount).expectSuccess()
            }
        }

        @Test("WRITE-17: the same holds for the calls of the library") func isEnforcedOnCalls() async throws {
            try await ProvidedMount.run(listing: .everything) { tree in
                tree.addFile("file", content: RemoteContent("text"), identifier: "file")
                tree.addDirectory("d", identifier: "d")
                tree.edit("file") { $0.capabilities = .readOnly }
            } _: { mount async throws in
                let host = mount.host
                #expect(
                    await failure { _ = try host.renameItem(withIdentifier: "file", toName: "x") }?.errno
                        == .notPermitted)
                #expect(
                    await failure {
                        _ = try await host.reparentItem(withIdentifier: "file", toParentItemWithIdentifier: "d")
                    }?.errno == .notPermitted)
                #expect(await failure { try await host.deleteItem(withIdentifier: "file") }?.errno == .notPermitted)
                #expect(mount.provider.log.count(of: .modify) + mount.provider.log.count(of: .delete) == 0)
            }
        }

        private func bash(_ line: String, _ mount: ProvidedMount) async throws -> Command.Outcome {
            try await Command(["bash", "-c", line, "-", mount.path.string], seconds: 20).run()
        }
    }
}
