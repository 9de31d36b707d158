import Control
import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Daemon

extension RealMount {
    /// The attribute that file managers read for their emblems.
    @Suite struct SyncAttributes {
        private func sync(_ name: String, of mount: ProvidedMount) async throws -> String {
            try await Command.run("getfattr", "--only-values", "-n", "user.yonder.sync", mount[name]).output
        }

        @Test("an item that the remote does not have yet has no version: null, and ENODATA")
        func absentVersion() async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addFile("known", content: RemoteContent("text"), identifier: "known")
            } _: { mount async throws in
                let gate = mount.provider.faults.hold(.create)
                #expect(try await Command.shell("echo new >\"$1\"", mount["new"]).status == 0)
                let reporter = ItemReporter(host: mount.host)
                for (name, isNew) in [("new", true), ("known", false)] {
                    let found = try mount.host.replica.database.item(named: name, in: .root)
                    let item = try #require(found)
                    let information = try await reporter.information(on: item, path: mount[name])
                    #expect((information.contentVersion == nil) == isNew, "\(name)")
                    #expect((information.metadataVersion == nil) == isNew, "\(name)")
                    let version = try await Command.run("getfattr", "-n", "user.yonder.version", mount[name])
                    #expect((version.status != 0) == isNew, "\(name): \(version.output)")
                    if isNew { #expect(version.errors.contains("No such attribute"), "\(version.errors)") }
                }
                gate.open()
            }
        }

        @Test("EVICT-8: user.yonder.sync says that an item is being uploaded") func uploading() async throws {
            try await ProvidedMount.run(options: .with(\.concurrentCalls, 4), listing: .root) { tree in
                tree.addFile("edited", content: RemoteContent("text"), identifier: "edited")
            } _: { mount async throws in
                #expect(try await sync("edited", of: mount) == "synced")
                let gates = [mount.provider.faults.hold(.create), mount.provider.faults.hold(.modify)]
                let written = try await Command.shell(
                    "cd \"$1\" && echo new >new && echo more >>edited", mount.path.string)
                #expect(written.status == 0, "\(written.errors)")
                for name in ["new", "edited"] {
                    #expect(
                        try await eventually(within: .seconds(20)) {
                            try await sync(name, of: mount) == "uploading"
                        }, "\(name)")
                }
                for gate in gates { gate.open() }
                for name in ["new", "edited"] {
                    #expect(
                        try await eventually(within: .seconds(20)) { try await sync(name, of: mount) == "synced" },
                        "\(name)")
                }
            }
        }
    }
}
