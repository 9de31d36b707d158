import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import S3Provider

/// Listings that do not show the last change of an object yet.
extension ConditionTests {
    @Test("S3-5: a new file replaces nothing that another client has written and a listing does not show yet")
    func unlistedObjectStays() async throws {
        try await StrictStoreProgram.withRemote(["ignores", "unlisted=top/file"]) { store, remote, _ in
            try await store.put("theirs", to: "top/file")
            await #expect(throws: RemoteConditionFailure.self) { try await write("ours", remote, if: .absent) }
            #expect(try await store.ask("curl -sS \"$at/bucket/top/file\"") == "theirs")
        }
    }

    @Test("S3-7: what a listing does not show yet is not taken for deleted", arguments: [1, 3], [true, false])
    func unlistedObjectIsCompared(width: Int, isWanted: Bool) async throws {
        let settings = S3Settings(width: width)
        try await StrictStoreProgram.withRemote(["ignores", "unlisted=top/2"], settings: settings) { store, remote, _ in
            for number in 1...3 { try await store.put("text", to: "top/\(number)") }
            await remote.preconditions.support()
            let tag = try #require(try await remote.client.object("top/2")).tag
            let left = try await remote.deleter.delete([
                Deletion(key: "top/1", tag: tag), Deletion(key: "top/2", tag: isWanted ? tag : "\"other\""),
                Deletion(key: "top/3", tag: tag),
            ])
            #expect(left == (isWanted ? [] : ["top/2"]))
            var present: [String] = []
            for number in 1...3 {
                if try await remote.client.object("top/\(number)") != nil { present.append("top/\(number)") }
            }
            #expect(present == left)
        }
    }

    @Test(
        "S3-5, S3-7: what another client has written is neither replaced nor deleted because a listing is older",
        arguments: ["ignores", "ignores=deletes"])
    func laterListedObjectStays(on server: String) async throws {
        try await StrictStoreProgram.withRemote([server, "outdated=top/file"]) { store, remote, _ in
            try await store.put("first", to: "top/file")
            let first = try await remote.entry(at: RemotePath("file"))
            try await store.put("theirs", to: "top/file")
            let entry = try await remote.entry(at: RemotePath("file"))
            #expect(entry == first)
            await #expect(throws: (any Error).self) { try await write("ours", remote, if: .unchanged(tag: first.tag)) }
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: first.tag))
            }
            #expect(try await store.ask("curl -sS \"$at/bucket/top/file\"") == "theirs")
        }
    }

    @Test("S3-7: a link that was written anew is not reported as deleted because a listing is older")
    func laterListedLinkStays() async throws {
        try await StrictStoreProgram.withRemote(["plain", "outdated=top/link.rclonelink"]) { store, remote, _ in
            try await store.put("first", to: "top/link.rclonelink")
            _ = try await remote.entry(at: RemotePath("link"))
            try await store.put("theirs", to: "top/link.rclonelink")
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(RemotePath("link"), kind: .symbolicLink, if: .always)
            }
            #expect(try await store.ask("curl -sS \"$at/bucket/top/link.rclonelink\"") == "theirs")
            // The server has refused no ETag that an object has.
            #expect(remote.preconditions.known?.deleting != nil)
        }
    }
}
