import FileProvider
import FileProviderTesting
import TestSupport
import Testing

extension RealMount {
    /// The attribute that file managers read for their emblems.
    @Suite struct SyncAttributes {
        private func sync(_ name: String, of mount: ProvidedMount) async throws -> String {
            try await Command.run("getfattr", "--only-values", "-n", "user.yonder.sync", mount[name]).output
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
