import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import S3Provider

/// What a server does that Swift does not: Programs/strict_store.py.
@Suite(.tags(.server)) struct ConditionTests {
    private func withStore(
        _ options: String..., region: String? = "us-east-1", token: String = "old",
        _ body: (S3Remote, TemporaryDirectory, () async throws -> [String]) async throws -> Void
    ) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let store = try await StrictStoreProgram(options)
        defer { store.stop() }
        let manager = TestManager(
            domain: FileProviderDomain(identifier: "test", source: "s3://bucket/top"),
            stateDirectory: try scratch.makeDirectory("state"))
        _ = try scratch.makeDirectory(".aws")
        try Self.write(token, scratch)
        let environment = ["HOME": scratch.path.string]
        let remote = try S3ProviderFactory.remote(
            S3ProviderFactory.Options(endpoint: store.endpoint, region: region), for: manager,
            environment: { environment },
            logger: Logger(label: "test"))
        try await withCleanUp({ await remote.close() }) {
            try await body(remote, scratch) { try await store.log() }
        }
    }

    private static func write(_ token: String, _ scratch: TemporaryDirectory) throws {
        let text = "[default]\naws_access_key_id = a\naws_secret_access_key = b\naws_session_token = \(token)\n"
        _ = try scratch.makeFile(".aws/credentials", Array(text.utf8))
    }

    func write(
        _ text: String, _ remote: S3Remote, if condition: RemoteCondition, to path: String = "file"
    ) async throws -> RemoteEntry {
        var entry: RemoteEntry?
        if let directory = path.split(separator: "/").dropLast().first {
            _ = try? await remote.makeDirectory(at: RemotePath(String(directory)), attributes: RemoteAttributes())
        }
        try await withContent(Array(text.utf8)) {
            entry = try await remote.write($0, to: RemotePath(path), attributes: RemoteAttributes(), if: condition)
        }
        return try #require(entry)
    }

    @Test func conditionsAreLeftToAServerThatKnowsThem() async throws {
        try await withStore { remote, _, log in
            let first = try await write("one", remote, if: .absent)
            #expect(remote.traits.checksConditions && remote.traits.peculiarities.isEmpty)
            let second = try await write("two", remote, if: .unchanged(tag: first.tag))
            await #expect(throws: RemoteConditionFailure(present: second)) {
                try await write("three", remote, if: .unchanged(tag: first.tag))
            }
            await #expect(throws: RemoteConditionFailure(present: second)) {
                try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: first.tag))
            }
            try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: second.tag))
            // What is gone already is deleted.
            try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: second.tag))
            await #expect(throws: RemoteConditionFailure(present: nil)) {
                try await write("three", remote, if: .unchanged(tag: first.tag))
            }
            let asked = try await log()
            #expect(asked.contains("PUT top/file *"))
            #expect(asked.contains("PUT top/file \(String(decoding: first.tag, as: UTF8.self))"))
            #expect(asked.contains("DELETE top/file \(String(decoding: second.tag, as: UTF8.self))"))
        }
    }

    @Test func foreignWriteDuringDeletionStays() async throws {
        try await withStore("meanwhile=top/file") { remote, _, _ in
            let ours = try await write("ours", remote, if: .absent)
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: ours.tag))
            }
            let there = try await remote.entry(at: RemotePath("file"))
            #expect(failure?.present == there && there.size == 6)
        }
    }

    @Test func foreignWriteDuringRenameStays() async throws {
        try await withStore("meanwhile=top/file") { remote, _, _ in
            _ = try await write("ours", remote, if: .absent)
            _ = try await remote.move(RemotePath("file"), to: RemotePath("moved"), kind: .file)
            #expect(try await remote.entry(at: RemotePath("moved")).size == 4)
            #expect(try await remote.entry(at: RemotePath("file")).size == 6)
            #expect(remote.moves.records.isEmpty)
        }
    }

    @Test(
        "in a directory, too, whatever a server knows of deleting many at once",
        arguments: ["plain", "ignores=batches", "refuses=batches"])
    func foreignWriteDuringRenameOfDirectoryStays(on store: String) async throws {
        try await withStore(store, "meanwhile=top/a/2") { remote, _, log in
            for number in 1...5 { _ = try await write("ours", remote, if: .absent, to: "a/\(number)") }
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            let left = try await remote.entries(in: RemotePath("a"), from: nil, limit: 10).entries
            #expect(left.map(\.name) == ["2"] && left.map(\.size) == [6])
            #expect(try await remote.entries(in: RemotePath("b"), from: nil, limit: 10).entries.count == 5)
            let single = try await log().filter { $0.hasPrefix("DELETE top/a/") }
            // The directory's own object is one of them.
            #expect(single.count == (store == "plain" ? 0 : 6))
        }
    }

    @Test func aServerThatIgnoresConditionsOfDeletingIsFoundOut() async throws {
        try await withStore("ignores=deletes") { remote, _, log in
            let first = try await write("one", remote, if: .absent)
            let second = try await write("two", remote, if: .unchanged(tag: first.tag))
            #expect(remote.traits.checksConditions && remote.traits.peculiarities.count == 1)
            await #expect(throws: RemoteConditionFailure(present: second)) {
                try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: first.tag))
            }
            try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: second.tag))
            // With nothing between the look and the request.
            let asked = try await log()
            let deleted = try #require(asked.firstIndex(of: "DELETE top/file"))
            #expect(asked[deleted - 1] == "HEAD top/file")
        }
    }

    @Test("S3-5, S3-7: one request compares an object that has the ETag of its listing, where the server compares none")
    func comparedWithOneRequest() async throws {
        try await withStore("ignores") { remote, _, log in
            func asked() async throws -> [String] { try await log().filter { !$0.contains("/.yonder-") } }
            let first = try await write("one", remote, if: .absent)
            let beforeWriting = try await asked().count
            let second = try await write("two", remote, if: .unchanged(tag: first.tag))
            #expect(try await asked().dropFirst(beforeWriting).prefix(2) == ["HEAD top/file", "PUT top/file"])
            let beforeDeleting = try await asked().count
            try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: second.tag))
            #expect(try await asked().dropFirst(beforeDeleting) == ["HEAD top/file", "DELETE top/file"])
        }
    }

    @Test("S3-4: an object is asked for its mode before it is replaced only where its metadata has not been seen")
    func askedForItsMode() async throws {
        try await StrictStoreProgram.withRemote(["plain"]) { store, remote, _ in
            func asked() async throws -> Int { try await store.log().filter { $0 == "HEAD top/file" }.count }
            try await store.put("theirs", to: "top/file")
            let theirs = try await remote.entry(at: RemotePath("file"))
            let before = try await asked()
            let first = try await write("one", remote, if: .unchanged(tag: theirs.tag))
            #expect(try await asked() == before + 1)
            _ = try await write("two", remote, if: .unchanged(tag: first.tag))
            #expect(try await asked() == before + 1)
        }
    }

    @Test(
        "S3-27: new content keeps the headers of an object, read or not, also after a rename, and nothing that describes its bytes",
        arguments: [false, true])
    func headers(isRead: Bool) async throws {
        try await StrictStoreProgram.withRemote(["plain"]) { store, remote, _ in
            let kept = [
                "cache-control: max-age=60", "content-disposition: inline", "content-language: en",
                "content-type: text/html; charset=utf-8", "expires: Thu, 01 Jan 2099 00:00:00 GMT",
            ]
            // Content in a coding is not read.
            let others = ["x-amz-meta-md5chksum: x"] + (isRead ? [] : ["content-encoding: gzip"])
            let words = (kept + others).map { "-H '\($0)'" }.joined(separator: " ")
            _ = try await store.ask("curl -sS -X PUT \(words) --data-binary 'theirs' \"$at/bucket/top/file\"")
            /// Those of the object that are of interest here.
            func headers(_ key: String) async throws -> [String] {
                let lines = try await store.ask("curl -sS -I \"$at/bucket/\(key)\"").split(whereSeparator: \.isNewline)
                let names = Set((kept + others).compactMap { $0.split(separator: ":").first })
                return lines.filter { names.contains($0.prefix { $0 != ":" }) }.map(String.init).sorted()
            }
            #expect(try await headers("top/file") == (kept + others).sorted())
            let theirs = try await remote.entry(at: RemotePath("file"))
            if isRead {
                _ = try await remote.read(RemotePath("file"), tag: theirs.tag, range: nil, into: CollectingSink())
            }
            let first = try await write("one", remote, if: .unchanged(tag: theirs.tag))
            #expect(try await headers("top/file") == kept)
            _ = try await write("two", remote, if: .unchanged(tag: first.tag))
            #expect(try await headers("top/file") == kept)
            let moved = try await remote.move(RemotePath("file"), to: RemotePath("moved"), kind: .file)
            _ = try await write("three", remote, if: .unchanged(tag: moved.tag), to: "moved")
            #expect(try await headers("top/moved") == kept)
        }
    }

    @Test func aServerThatIgnoresConditionsIsFoundOut() async throws {
        try await withStore("ignores") { remote, _, _ in
            let first = try await write("one", remote, if: .absent)
            #expect(!remote.traits.checksConditions && remote.traits.peculiarities.count == 1)
            _ = try await write("two", remote, if: .unchanged(tag: first.tag))
            await #expect(throws: RemoteConditionFailure.self) {
                try await write("three", remote, if: .unchanged(tag: first.tag))
            }
        }
    }

    @Test(
        "S3-7: what another client writes in the new place of a rename stays, and the rename collides with it",
        arguments: [
            ("plain", "arrives="), ("ignores", "arrives="), ("ignores=copies", "arrives="), ("plain", "overtakes=PUT "),
            ("ignores", "overtakes=PUT "),
        ])
    func foreignWriteInTheNewPlaceStays(on store: String, _ event: String) async throws {
        try await withStore(store, event + "top/moved") { remote, _, _ in
            _ = try await write("ours", remote, if: .absent)
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.move(RemotePath("file"), to: RemotePath("moved"), kind: .file)
            }
            let there = try await remote.entry(at: RemotePath("moved"))
            #expect(failure?.present == there && there.size == 6)
            #expect(try await remote.entry(at: RemotePath("file")).size == 4)
            #expect(remote.moves.records.isEmpty)
        }
        try await withStore(store, event + "top/b/2") { remote, _, _ in
            for number in 1...3 { _ = try await write("ours", remote, if: .absent, to: "a/\(number)") }
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            }
            #expect(failure?.present?.kind == .directory)
            let there = try await remote.entries(in: RemotePath("b"), from: nil, limit: 10).entries
            #expect(there.map(\.name) == ["2"] && there.map(\.size) == [6])
            #expect(try await remote.entries(in: RemotePath("a"), from: nil, limit: 10).entries.count == 3)
            #expect(remote.moves.records.isEmpty)
        }
    }

    @Test(
        "S3-5: a symbolic link replaces nothing that came meanwhile",
        arguments: [("plain", "arrives="), ("plain", "overtakes=PUT "), ("ignores", "overtakes=PUT ")])
    func foreignLinkStays(on store: String, _ event: String) async throws {
        try await withStore(store, event + "top/link.rclonelink") { remote, _, _ in
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.makeSymbolicLink(at: RemotePath("link"), to: "ours", attributes: RemoteAttributes())
            }
            let there = try await remote.entry(at: RemotePath("link"))
            #expect(failure?.present == there && there.attributes.symbolicLinkTarget == "theirs")
            _ = try await remote.makeSymbolicLink(at: RemotePath("other"), to: "ours", attributes: RemoteAttributes())
        }
    }

    @Test(
        "S3-7: a deletion that a busy server has to be sent again deletes nothing that came meanwhile",
        arguments: ["ignores", "ignores=deletes"])
    func foreignWriteBeforeRepeatedDeletionStays(on store: String) async throws {
        try await withStore(store, "overtakes=DELETE top/file") { remote, _, _ in
            let ours = try await write("ours", remote, if: .absent)
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: ours.tag))
            }
            let there = try await remote.entry(at: RemotePath("file"))
            #expect(failure?.present == there && there.size == 6)
        }
        try await withStore(store, "overtakes=POST top/a/2") { remote, _, _ in
            for number in 1...5 { _ = try await write("ours", remote, if: .absent, to: "a/\(number)") }
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            let left = try await remote.entries(in: RemotePath("a"), from: nil, limit: 10).entries
            #expect(left.map(\.name) == ["2"] && left.map(\.size) == [6])
            #expect(try await remote.entries(in: RemotePath("b"), from: nil, limit: 10).entries.count == 5)
        }
    }

    @Test(
        "S3-7: a link that another client writes anew is not deleted",
        arguments: ["plain", "ignores", "ignores=deletes"])
    func foreignLinkBeforeRepeatedDeletionStays(on server: String) async throws {
        try await withStore(server, "overtakes=DELETE top/link.rclonelink") { remote, _, _ in
            let link = RemotePath("link")
            _ = try await remote.makeSymbolicLink(at: link, to: "ours", attributes: RemoteAttributes())
            let refused = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(link, kind: .symbolicLink, if: .always)
            }
            let there = try await remote.entry(at: link)
            #expect(refused?.present == there && there.attributes.symbolicLinkTarget == "theirs")
            try await remote.delete(link, kind: .symbolicLink, if: .always)
            let gone = await failure { _ = try await remote.entry(at: link) }
            #expect(gone?.code == .noSuchItem)
        }
    }

    @Test("S3-12: a rename replaces a copy whose original changes meanwhile", arguments: ["plain", "ignores"])
    func olderCopiesAreReplaced(on server: String) async throws {
        try await StrictStoreProgram.withRemote([server, "follows=top/a/1"]) { store, remote, _ in
            for number in 1...2 { try await store.put("first", to: "top/a/\(number)") }
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            #expect(try await store.ask("curl -sS \"$at/bucket/top/b/1\"") == "theirs")
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            #expect(keys == ["top/b/1", "top/b/2"])
        }
    }

    @Test("S3-5: a write that a busy server has to be sent again replaces nothing that came meanwhile")
    func foreignWriteBeforeRepetitionStays() async throws {
        try await withStore("ignores", "overtakes=PUT top/file") { remote, _, _ in
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await write("ours", remote, if: .absent)
            }
            let there = try await remote.entry(at: RemotePath("file"))
            #expect(failure?.present == there && there.size == 6)
        }
    }

    @Test(
        "S3-7: a deletion without the server's check is not reported as done when it was not",
        arguments: [ItemKind.file, .symbolicLink])
    func foreignWriteBeforeUncheckedDeletionStays(kind: ItemKind) async throws {
        let key = kind == .file ? "top/name" : "top/name.rclonelink"
        // The right ETag is refused, and the next deletion, too, because another client has written the key then.
        let options = ["plain", "refuses=\(key)", "overtakes=DELETE \(key)"]
        try await StrictStoreProgram.withRemote(options) { store, remote, _ in
            try await store.put("first", to: key)
            let first = try await remote.entry(at: RemotePath("name"))
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(RemotePath("name"), kind: kind, if: .unchanged(tag: first.tag))
            }
            #expect(try await store.ask("curl -sS \"$at/bucket/\(key)\"") == "theirs")
        }
    }

    @Test func anExpiredSessionIsReplacedByTheOneInTheFile() async throws {
        try await withStore("expired=old", token: "new") { remote, scratch, _ in
            _ = try await remote.entry(at: .root)
            try Self.write("old", scratch)
        }
        try await withStore("expired=old") { remote, scratch, _ in
            let refused = await failure { _ = try await remote.entry(at: .root) }
            #expect(refused?.code == .notAuthenticated)
            #expect(refused?.message.contains("expired") == true)
            try Self.write("new", scratch)
            _ = try await remote.entry(at: .root)
        }
    }

    @Test func theRightRegionIsFoundWhereNoneWasNamed() async throws {
        try await withStore("region=eu-north-1", region: nil) { remote, _, _ in
            _ = try await remote.entry(at: .root)
        }
        try await withStore("region=eu-north-1", region: "us-east-1") { remote, _, _ in
            let error = await failure { _ = try await remote.entry(at: .root) }
            #expect(error?.message.contains("region") == true, "\(error?.message ?? "")")
        }
    }

    // MARK: - Tags

    @Test func aServerMayListTagsWithoutQuotes() async throws {
        try await withStore("bare") { remote, _, _ in
            let first = try await write("one", remote, if: .absent)
            let listed = try await remote.entries(in: .root, from: nil, limit: 10).entries
            #expect(listed.map(\.tag) == [first.tag])
            let sink = CollectingSink()
            _ = try await remote.read(RemotePath("file"), tag: first.tag, range: nil, into: sink)
            #expect(try sink.bytes(in: 0..<3) == Array("one".utf8))
            let second = try await write("two", remote, if: .unchanged(tag: first.tag))
            try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: second.tag))
        }
    }

    @Test("what is renamed where every copy gets another tag is the same content still")
    func renamedContentIsTheSame() async throws {
        try await withStore("encrypts") { remote, scratch, log in
            let first = try await write("one", remote, if: .absent, to: "a/file")
            let other = try await write("one", remote, if: .absent, to: "a/other")
            #expect(first.tag != other.tag)
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            let moved = try await remote.move(RemotePath("b/file"), to: RemotePath("b/moved"), kind: .file)
            #expect(moved.tag == first.tag)
            let dated = try await remote.set(
                RemoteAttributes(contentModificationDate: FileTimestamp(seconds: 1_300_000_000)),
                of: RemotePath("b/moved"), kind: .file)
            #expect(dated.entry.tag == first.tag && !dated.notStored.contains(.contentModificationDate))
            // In another life, too.
            let again = S3Remote(client: remote.client, manager: remote.manager)
            let listed = try await again.entries(in: RemotePath("b"), from: nil, limit: 10).entries
            #expect(listed.map(\.tag) == [first.tag, other.tag])
            let sink = CollectingSink()
            _ = try await again.read(RemotePath("b/moved"), tag: first.tag, range: nil, into: sink)
            #expect(try sink.bytes(in: 0..<3) == Array("one".utf8))
            let written = try await write("two", again, if: .unchanged(tag: first.tag), to: "b/moved")
            await #expect(throws: RemoteConditionFailure(present: written)) {
                try await write("three", again, if: .unchanged(tag: first.tag), to: "b/moved")
            }
            try await again.delete(RemotePath("b/other"), kind: .file, if: .unchanged(tag: other.tag))
            let gone = await failure { _ = try await again.entry(at: RemotePath("b/other")) }
            #expect(gone?.code == .noSuchItem)
        }
    }
}
