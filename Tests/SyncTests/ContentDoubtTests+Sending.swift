import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

/// What is sent of files whose content is doubtful.
extension EngineTests.ContentDoubtTests {
    @Test("FOLDER-17: content with attributes that may have been stored already is not based on a metadata version")
    func repeated() async throws {
        try await Machine.run(
            options: .with(\.contentVersionsMayRepeat, true), fill: ScriptRun.fill
        ) { machine async throws in
            try await machine.setPermissions(of: "a", to: 0o600)
            machine.provider.faults.add(.applyThenFail(FileProviderError(.timedOut)), to: .modify)
            try await machine.send(passes: 1)
            machine.provider.faults.clear()
            let first = try #require(machine.provider.log.calls(of: .modify, "a").last)
            #expect(first.fields == .permissions && first.baseVersion?.metadataVersion.isEmpty == false)
            try await machine.write("other", to: "a")
            try await machine.send(passes: 1)
            let last = try #require(machine.provider.log.calls(of: .modify, "a").last)
            #expect(last.fields?.isSuperset(of: [.contents, .permissions]) == true)
            #expect(last.baseVersion?.metadataVersion == [])
        }
    }

    @Test("FOLDER-17: content that is sent alone after a move that has failed is not based on a metadata version")
    func repeatedAlone() async throws {
        try await Machine.run(
            options: .with(\.contentVersionsMayRepeat, true), fill: ScriptRun.fill
        ) { machine async throws in
            machine.provider.faults.fail(.modify, with: FileProviderError(.cannotSynchronize), times: 1)
            try await machine.write("other", to: "a")
            try await machine.rename("a", to: "renamed")
            try await machine.send(passes: 2)
            let calls = machine.provider.log.calls(of: .modify, "a")
            let first = try #require(calls.first)
            #expect(first.fields?.isSuperset(of: [.contents, .filename]) == true)
            #expect(first.baseVersion?.metadataVersion.isEmpty == false)
            let next = try #require(calls.dropFirst().first)
            #expect(next.fields == [.contents, .contentModificationDate])
            #expect(next.baseVersion?.metadataVersion == [])
        }
    }

    @Test("FOLDER-17: a later change that attributes explain does not hide what was written over an unsent edit")
    func explainedAfterWriting() async throws {
        try await Machine.run(
            options: .with(\.contentVersionsMayRepeat, true), fill: ScriptRun.fill
        ) { machine async throws in
            let old = try await machine.item("a").base.version.metadataVersion
            try await machine.write("other", to: "a")
            machine.provider.change { $0.writeSameVersion(RemoteContent("other a"), to: "a") }
            try await machine.ingest()
            machine.provider.change { $0.edit("a") { $0.permissions = 0o600 } }
            try await machine.ingest()
            let item = try await machine.item("a")
            #expect(item.inode.permissions == 0o600)
            let kept = item.base.version.metadataVersion
            #expect(kept == [UInt8(ascii: "?")] + old)
        }
    }

    @Test("FOLDER-17: a deletion that waits is of the version that was removed here") func deletion() async throws {
        try await Machine.run(
            options: .with(\.contentVersionsMayRepeat, true), fill: ScriptRun.fill
        ) { machine async throws in
            let database = machine.replica.database
            let old = try await machine.item("a").base.version
            try await machine.remove("a")
            machine.provider.change { $0.writeSameVersion(RemoteContent("other a"), to: "a") }
            try await machine.ingest()
            let written = try #require(try database.pendingDeletions().first)
            #expect(written.version == old)
            // Its new name does not show that it was not written, too.
            machine.provider.change { $0.rename("a", to: "renamed") }
            try await machine.ingest()
            let renamed = try #require(try database.pendingDeletions().first)
            #expect(renamed.name == "renamed" && renamed.version == old)
        }
    }

    @Test("FOLDER-17: a deletion that waits keeps its version while the remote has other content")
    func deletionOfOtherContent() async throws {
        try await Machine.run(
            options: .with(\.contentVersionsMayRepeat, true), fill: ScriptRun.fill
        ) { machine async throws in
            let old = try await machine.item("a").base.version
            try await machine.remove("a")
            machine.provider.change { $0.write(RemoteContent("other"), to: "a") }
            try await machine.ingest()
            machine.provider.change { $0.rename("a", to: "renamed") }
            try await machine.ingest()
            let deletion = try #require(try machine.replica.database.pendingDeletions().first)
            #expect(deletion.name == "renamed" && deletion.version == old)
        }
    }
}
