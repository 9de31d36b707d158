import Control
import FileProvider
import FileProviderTesting
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

extension RealMount {
    /// What the attributes, `yonder info` and `yonder pending` say of the state of an item.
    @Suite struct ItemStates {
        private func sync(_ name: String, of mount: ProvidedMount) async throws -> String {
            try await Command.run("getfattr", "--only-values", "-n", "user.yonder.sync", mount[name]).output
        }

        private func pending(of mount: ProvidedMount) async throws -> [PendingItem] {
            var items: [PendingItem] = []
            try await PendingReporter(host: mount.host).list { items += $0 }
            return items
        }

        @Test("PIN-2: the error of a download that is retried says when") func nextTryOfADownload() async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addFile("pinned", content: RemoteContent("text"), identifier: "pinned")
            } _: { mount async throws in
                mount.provider.faults.fail(
                    .fetch, of: "pinned", with: FileProviderError(.fileReadNoPermission, "no"), times: nil)
                let item = try #require(try mount.host.replica.database.item("pinned"))
                let set = try await Command.run(
                    "setfattr", "-n", "user.yonder.policy", "-v", "keepDownloaded", mount["pinned"])
                #expect(set.status == 0, "\(set.errors)")
                #expect(
                    try await eventually(within: .seconds(20)) {
                        let information = try await ItemReporter(host: mount.host)
                            .information(on: item, path: mount["pinned"])
                        return information.error?.code == "fileReadNoPermission" && information.error?.nextTry != nil
                    })
            }
        }

        @Test("REIMPORT-5: the error of an item that the remote did not take in a reimport says when it is tried again")
        func nextTryOfAnOffer() async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addFile("file", content: RemoteContent("text"), identifier: "file")
            } _: { mount async throws in
                mount.provider.faults.fail(.create, with: FileProviderError(.insufficientQuota), times: nil)
                try await mount.reimport(below: .rootContainer)
                #expect(
                    try await eventually(within: .seconds(20)) {
                        try await pending(of: mount).contains {
                            $0.path.hasSuffix("/file") && $0.fields == ["reimport"] && $0.error?.nextTry != nil
                        }
                    })
                let item = try #require(try mount.host.replica.database.item(named: "file", in: .root))
                // It has no time as long as the offer that has failed is under way.
                #expect(
                    try await eventually(within: .seconds(20)) {
                        let information = try await ItemReporter(host: mount.host)
                            .information(on: item, path: mount["file"])
                        return information.error?.code == "insufficientQuota" && information.error?.nextTry != nil
                    })
                mount.provider.faults.clear()
                try await mount.host.engine.retry()
            }
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
