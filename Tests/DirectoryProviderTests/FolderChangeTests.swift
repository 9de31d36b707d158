import FileProvider
import FileProviderTesting
import Foundation
import TestSupport
import Testing

/// The change feed of a folder.
@Suite struct FolderChangeTests {
    @Test("CHANGE-1: what has changed is reported at once, also while a program changes another file all the time")
    func busyWriter() async throws {
        try await FolderRemote.run { remote, session in
            for directory in ["busy", "quiet"] {
                try await remote.makeDirectory(directory)
                try await remote.write([1], to: "\(directory)/file")
                let item = try await session.find(directory)
                let enumerator = try session.provider.enumerator(for: item.itemIdentifier, request: session.request)
                _ = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10)
            }
            let feed = try session.provider.enumerator(for: .workingSet, request: session.request)
            var anchor = try #require(try await feed.currentSyncAnchor())
            let writer = Task {
                while !Task.isCancelled {
                    try await remote.write([2], to: "busy/file")
                    try await Task.sleep(for: .milliseconds(2))
                }
            }
            defer { writer.cancel() }
            try await Task.sleep(for: .milliseconds(30))
            for number in 0..<10 {
                try await remote.write([3], to: "quiet/new\(number)")
                let changes = try await feed.enumerateChanges(from: anchor, suggestedBatchSize: 1000)
                #expect(changes.updated.contains { $0.filename == "new\(number)" })
                anchor = changes.anchor
            }
        }
    }

    @Test(
        "CHANGE-1: a file system below the folder that is unmounted has everything compared",
        .enabled("only root can mount") { FUSEAvailability.isRoot })
    func unmountedBelow() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("disk")
            try await mounting(remote["disk"]) {
                try await remote.write([1], to: "disk/file")
                let disk = try await session.find("disk")
                let enumerator = try session.provider.enumerator(for: disk.itemIdentifier, request: session.request)
                _ = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10)
                let feed = try session.provider.enumerator(for: .workingSet, request: session.request)
                let anchor = try #require(try await feed.currentSyncAnchor())
                _ = try await feed.enumerateChanges(from: anchor, suggestedBatchSize: 1000)
                try #require(try await Command.run("umount", remote["disk"]).status == 0)
                #expect(
                    await failureCode { _ = try await feed.enumerateChanges(from: anchor, suggestedBatchSize: 1000) }
                        == .syncAnchorExpired)
            }
        }
    }

    private func mounting(_ path: String, _ body: () async throws -> Void) async throws {
        try #require(try await Command.run("mount", "-t", "tmpfs", "none", path).status == 0)
        try await withCleanUp({ _ = try await Command.run("umount", "-q", "-l", path) }) { try await body() }
    }
}
