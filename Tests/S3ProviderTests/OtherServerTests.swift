import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import Logging
import TestSupport
import Testing

@testable import S3Provider

/// Servers whose ETags and preconditions are not Amazon's: gateways, and servers that encrypt.
@Suite(.tags(.server)) struct OtherServerTests {
    func withStore(
        _ options: String..., body: (S3Remote, StrictStoreProgram) async throws -> Void
    ) async throws {
        try await StrictStoreProgram.withRemote(options) { store, remote, _ in try await body(remote, store) }
    }

    func write(
        _ text: String, _ remote: S3Remote, if condition: RemoteCondition, to path: String = "file"
    ) async throws -> RemoteEntry {
        var entry: RemoteEntry?
        try await withContent(Array(text.utf8)) {
            entry = try await remote.write($0, to: RemotePath(path), attributes: RemoteAttributes(), if: condition)
        }
        return try #require(entry)
    }

    func read(_ remote: S3Remote, _ tag: [UInt8], _ path: String = "file") async throws -> String {
        let sink = CollectingSink()
        let entry = try await remote.read(RemotePath(path), tag: tag, range: nil, into: sink)
        #expect(sink.isConfirmed)
        return String(decoding: try sink.bytes(in: 0..<(entry.size ?? 0)), as: UTF8.self)
    }

    /// A server on which everything works but with other words, whatever these are.
    private func checkOrdinaryLife(_ remote: S3Remote, _ store: StrictStoreProgram) async throws {
        let first = try await write("one", remote, if: .absent)
        #expect(try await remote.entries(in: .root, from: nil, limit: 10).entries.map(\.tag) == [first.tag])
        #expect(try await remote.entry(at: RemotePath("file")).tag == first.tag)
        #expect(try await read(remote, first.tag) == "one")
        var last = first
        for number in 1...3 {
            last = try await write("round \(number)", remote, if: .unchanged(tag: last.tag))
            #expect(try await read(remote, last.tag) == "round \(number)")
        }
        // A foreign write is still a conflict, and is not deleted.
        _ = try await store.ask("curl -sS -X PUT --data-binary theirs \"$at/bucket/top/file\"")
        let theirs = try await remote.entry(at: RemotePath("file"))
        #expect(theirs.tag != last.tag)
        await #expect(throws: RemoteConditionFailure(present: theirs)) {
            try await write("ours", remote, if: .unchanged(tag: last.tag))
        }
        await #expect(throws: RemoteConditionFailure(present: theirs)) { try await write("ours", remote, if: .absent) }
        await #expect(throws: RemoteConditionFailure(present: theirs)) {
            try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: last.tag))
        }
        #expect(try await read(remote, theirs.tag) == "theirs")
        let moved = try await remote.move(RemotePath("file"), to: RemotePath("moved"), kind: .file)
        #expect(try await read(remote, moved.tag, "moved") == "theirs")
        try await remote.delete(RemotePath("moved"), kind: .file, if: .unchanged(tag: moved.tag))
        #expect(await eventually { (try? await store.keys()) == [] })
    }

    @Test(
        "S3-6: overwriting works, and finds others' changes, whatever a server makes of an ETag in a precondition",
        arguments: ["unquoted", "refuses=right", "ignores", "plain"])
    func preconditions(on server: String) async throws {
        try await withStore(server) { remote, store in try await checkOrdinaryLife(remote, store) }
    }

    @Test(
        "CONFLICT-3: what is written on a server that lists other ETags, or answers with others, is known as one's own",
        arguments: ["lists=other", "answers=other"])
    func otherTags(on server: String) async throws {
        try await withStore(server) { remote, store in
            try await checkOrdinaryLife(remote, store)
            if server == "lists=other" {
                #expect(remote.traits.peculiarities.contains { $0.contains("lists other ETags") })
            }
        }
    }

    @Test("S3-6: Ceph's gateway gets ETags without quotes, and its condition is relied on")
    func bareTags() async throws {
        try await withStore("unquoted") { remote, store in
            let first = try await write("one", remote, if: .absent)
            _ = try await write("two", remote, if: .unchanged(tag: first.tag))
            #expect(remote.traits.checksConditions)
            #expect(remote.traits.peculiarities.contains { $0.contains("without quotes") })
            let tag = String(decoding: first.tag, as: UTF8.self).filter { $0 != "\"" }
            #expect(try await store.log().contains("PUT top/file \(tag)"))
        }
    }

    @Test("S3-6: a server that refuses the right ETag is not relied on, and the user is told so")
    func refusedRightTag() async throws {
        try await withStore("refuses=right") { remote, store in
            let first = try await write("one", remote, if: .absent)
            _ = try await write("two", remote, if: .unchanged(tag: first.tag))
            #expect(!remote.traits.checksConditions)
            #expect(remote.traits.peculiarities.contains { $0.contains("does not accept an object's own ETag") })
            // It is looked at, and then written without a condition.
            let asked = try await store.log()
            #expect(asked.contains("PUT top/file *") && asked.contains("PUT top/file"))
        }
    }

    @Test("S3-6: a refusal of the ETag that the object still has is no conflict")
    func refusalOfUnchangedObject() async throws {
        try await withStore("refuses=top/file") { remote, store in
            let first = try await write("one", remote, if: .absent)
            #expect(remote.traits.checksConditions)
            let second = try await write("two", remote, if: .unchanged(tag: first.tag))
            #expect(try await read(remote, second.tag) == "two")
            #expect(!remote.traits.checksConditions)
            await #expect(throws: RemoteConditionFailure(present: second)) {
                try await write("three", remote, if: .unchanged(tag: first.tag))
            }
        }
    }

    @Test("S3-25: a write that is acknowledged by a proxy and was not stored is made again, and is no conflict")
    func forgottenWrite() async throws {
        try await withStore("forgets=top/file") { remote, store in
            let first = try await write("one", remote, if: .absent)
            let failed = await failure { _ = try await write("two", remote, if: .unchanged(tag: first.tag)) }
            #expect(failed?.code == .malformedResponse)
            let second = try await write("two", remote, if: .unchanged(tag: first.tag))
            #expect(try await read(remote, second.tag) == "two")
        }
    }

    @Test("S3-25: a copy that is acknowledged by a proxy and was not made is no rename")
    func forgottenCopy() async throws {
        try await withStore("forgets=copies") { remote, store in
            let first = try await write("one", remote, if: .absent)
            let failed = await failure {
                _ = try await remote.move(RemotePath("file"), to: RemotePath("moved"), kind: .file)
            }
            #expect(failed?.code == .malformedResponse)
            #expect(try await store.keys() == ["top/file"])
            let moved = try await remote.move(RemotePath("file"), to: RemotePath("moved"), kind: .file)
            #expect(try await read(remote, moved.tag, "moved") == "one" && moved.tag == first.tag)
        }
    }

    @Test(
        "S3-25: an error after a good status is the error that it would be with its own",
        arguments: [
            ("InternalError", .providerDomainTemporarilyUnavailable), ("SlowDown", .serverUnreachable),
            ("AccessDenied", .fileReadNoPermission),
        ] as [(String, FileProviderError.Code)])
    func lateErrors(_ code: String, expected: FileProviderError.Code) async throws {
        try await withStore("breaks=\(code)") { remote, store in
            let first = try await write("one", remote, if: .absent)
            let failed = await failure {
                _ = try await remote.move(RemotePath("file"), to: RemotePath("moved"), kind: .file)
            }
            #expect(failed?.code == expected)
            #expect(try await store.keys() == ["top/file"])
            let moved = try await remote.move(RemotePath("file"), to: RemotePath("moved"), kind: .file)
            #expect(try await read(remote, moved.tag, "moved") == "one" && moved.tag == first.tag)
        }
    }

    @Test("S3-25: a page without an ETag is not taken for an object's content")
    func page() async throws {
        try await withStore("portal=top/file") { remote, _ in
            let entry = try await write("one", remote, if: .absent)
            let failed = await failure { _ = try await read(remote, entry.tag) }
            #expect(failed?.code == .malformedResponse)
        }
    }

    @Test("S3-25: an object is there, and is not overwritten, although the response about it does not tell which it is")
    func untaggedHead() async throws {
        try await withStore("untagged=top/file") { remote, store in
            try await store.put("one", to: "top/file")
            let listed = try #require(try await remote.client.listed("top/file"))
            let found = try await remote.client.object("top/file")
            #expect(found?.tag == listed.tag && found?.size == 3)
        }
        try await withStore("swift", "ranges=star") { remote, store in
            try await store.put("one", to: "top/file")
            _ = try await remote.client.listed("top/file")
            #expect(try await remote.client.object("top/file")?.size == 3)
        }
        // Without preconditions, and while the listing is late, that response alone tells of the other client's object.
        try await withStore("untagged=top/file", "unlisted=top/file", "ignores") { remote, store in
            try await store.put("theirs", to: "top/file")
            let failed = await failure { _ = try await write("ours", remote, if: .absent) }
            #expect(failed?.code == .malformedResponse)
            #expect(try await store.ask("curl -sS \"$at/bucket/top/file\"") == "theirs")
        }
    }

    @Test("S3-26: an object with a Content-Encoding of its own is read as it is stored")
    func storedCodings() async throws {
        try await withStore("coded=top/file") { remote, store in
            try await store.put("packed", to: "top/file")
            let entry = try await remote.entry(at: RemotePath("file"))
            #expect(try await read(remote, entry.tag) == "packed")
            let sink = CollectingSink()
            _ = try await remote.read(RemotePath("file"), tag: entry.tag, range: 0..<6, into: sink)
            #expect(try sink.bytes(in: 0..<6) == Array("packed".utf8))
        }
        // What a proxy has packed has another ETag.
        try await withStore("coded=top/file", "weak") { remote, store in
            try await store.put("packed", to: "top/file")
            let entry = try await remote.entry(at: RemotePath("file"))
            let failed = await failure { _ = try await read(remote, entry.tag) }
            #expect(failed?.code == .versionNoLongerAvailable)
        }
    }

    @Test("S3-25: content that is refused while nothing has changed is no conflict")
    func refusedContent() async throws {
        try await withStore("denies=top/file") { remote, _ in
            let first = try await write("one", remote, if: .absent)
            let failed = await failure { _ = try await write("two", remote, if: .unchanged(tag: first.tag)) }
            #expect(failed?.code == .providerDomainTemporarilyUnavailable)
        }
    }

    @Test("S3-25: deletions that are answered with an error are not made")
    func refusedDeletions() async throws {
        try await withStore("denies=batches") { remote, store in
            for number in 0..<5 {
                _ = try await store.ask("curl -sS -X PUT --data-binary x \"$at/bucket/top/d/\(number)\"")
            }
            let failed = await failure { try await remote.delete(RemotePath("d"), kind: .directory, if: .always) }
            #expect(failed != nil)
            #expect(try await store.keys().filter { $0.hasPrefix("top/d/") && $0 != "top/d/" }.count == 5)
        }
    }

    @Test("S3-25: a listing that has keys of other places is refused") func strays() async throws {
        try await withStore("strays") { remote, store in
            _ = try await write("one", remote, if: .absent)
            _ = try await store.ask("curl -sS -X PUT --data-binary x \"$at/bucket/elsewhere\"")
            let failed = await failure { _ = try await remote.entries(in: .root, from: nil, limit: 9) }
            #expect(failed?.code == .malformedResponse)
        }
    }

    @Test(
        "S3-25: a listing that does not say whether it goes on is refused",
        arguments: [("", false), ("yes", false), ("TRUE", false), ("1", false), ("False", true), ("0", true)])
    func unclearEnd(_ text: String, isEnd: Bool) async throws {
        try await withStore("truncated=\(text)") { remote, store in
            try await store.put("one", to: "top/file")
            let failed = await failure {
                let entries = try await remote.entries(in: .root, from: nil, limit: 9).entries
                #expect(entries.map(\.name) == ["file"])
            }
            #expect(failed?.code == (isEnd ? nil : .malformedResponse))
        }
    }

    @Test("S3-25: a directory that holds only what cannot be shown is there, and is not empty")
    func unreadableObjects() async throws {
        try await withStore("sizeless=top/d/file") { remote, store in
            try await store.put("one", to: "top/d/file")
            let directory = RemotePath("d")
            let listing = try await remote.entries(in: directory, from: nil, limit: 9)
            #expect(listing.entries.isEmpty && listing.leavesOut)
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(directory, kind: .directory, if: .empty)
            }
            #expect(try await store.keys() == ["top/d/file"])
        }
    }

    @Test("S3-3: a name with control characters that the server refuses is not tried again and again")
    func controlCharacters() async throws {
        try await withStore("controls=refused") { remote, _ in
            let file = try await write("one", remote, if: .absent)
            let failed = await failure { _ = try await write("two", remote, if: .absent, to: "a\u{1}b") }
            #expect(failed?.code == .cannotSynchronize)
            let stayed = await failure {
                _ = try await remote.move(RemotePath("file"), to: RemotePath("a\u{7F}b"), kind: .file)
            }
            #expect(stayed?.code == .cannotSynchronize)
            #expect(try await remote.entry(at: RemotePath("file")).tag == file.tag)
            // Some servers need a minute to refuse it, longer than other requests may take.
            #expect(remote.client.request("PUT", "top/a\u{1}b").patience == .seconds(120))
            #expect(remote.client.request("PUT", "top/ab").patience == nil)
        }
    }

    @Test("S3-5: what OpenStack Swift says of an object costs no connection of its own, unless the object is empty")
    func objectsOnSwift() async throws {
        try await withStore("swift") { remote, store in
            let client = remote.client
            for (key, bytes) in [("top/file", [1, 2, 3]), ("top/empty", [])] as [(String, [UInt8])] {
                _ = try await client.send { client.request("PUT", key, body: .bytes(bytes)) }
            }
            let before = try await store.log().count
            let file = try await client.object("top/file")
            let listed = try await client.listed("top/file")
            #expect(file?.size == 3 && file?.tag == listed?.tag)
            #expect(try await client.object("top/missing") == nil)
            #expect(try await client.object("top/empty")?.size == 0)
            let asked = try await store.log().dropFirst(before)
            #expect(asked == ["GET top/file", "GET", "GET top/missing", "GET top/empty", "HEAD top/empty"])
        }
    }

    @Test("S3-5: OpenStack Swift is known by its first response, also a listing, content or a refusal")
    func firstResponsesOfSwift() async throws {
        try await withStore("swift") { remote, store in
            try await store.put("one", to: "top/file")
            func looks(after first: (S3Client) async throws -> Void) async throws -> [String] {
                let client = S3Client(
                    remote.client.location, isRegionKnown: true, profile: nil,
                    environment: { ObjectStore.environment }, transport: remote.client.transport,
                    logger: Logger(label: "test"))
                try await first(client)
                let before = try await store.log().count
                #expect(try await client.object("top/missing") == nil)
                return Array(try await store.log().dropFirst(before))
            }
            let listing = try await looks { _ = try await $0.list(prefix: "top/", isFlat: true) }
            let content = try await looks {
                _ = try await $0.read("top/file", nil, isConditional: false, into: CollectingSink())
            }
            let refusal = try await looks {
                _ = try? await $0.read("top/missing", nil, isConditional: false, into: CollectingSink())
            }
            #expect([listing, content, refusal].allSatisfy { $0 == ["GET top/missing"] })
        }
    }

    @Test("S3-5: a proxy that gives a whole object for its first byte costs no download of it")
    func ignoredRanges() async throws {
        try await withStore("swift", "ranges=ignored") { remote, store in
            let client = remote.client
            let size = 9 << 20
            _ = try await client.send {
                client.request("PUT", "top/large", body: .bytes([UInt8](repeating: 1, count: size)))
            }
            let before = try await store.log().count
            #expect(try await client.object("top/large")?.size == Int64(size))
            #expect(try await client.object("top/large")?.size == Int64(size))
            #expect(try await client.object("top/missing") == nil)
            let asked = try await store.log().dropFirst(before)
            #expect(asked == ["GET top/large", "HEAD top/large", "HEAD top/large", "HEAD top/missing"])
        }
    }

    @Test("NAME-8: a part of a listing that does not end is refused", .timeLimit(.minutes(1)))
    func endlessPart() async throws {
        let server = try await ScriptedServer(program: "EndToEnd/Programs/hostile/store.py")
        defer { server.stop() }
        var configuration = HTTPTransport.Configuration()
        configuration.environment = [:]
        let client = S3Client(
            try S3Location(source: "s3://listing-endless", endpoint: "http://127.0.0.1:\(server.port)"),
            isRegionKnown: true, profile: nil, environment: { ObjectStore.environment },
            transport: HTTPTransport(configuration, logger: Logger(label: "test")), logger: Logger(label: "test"))
        let failed = await failure { _ = try await client.list(prefix: "evil/", isFlat: true) }
        #expect(failed?.code == .malformedResponse && failed?.message.contains("larger than") == true)
    }

    @Test(
        "NAME-8: a list of an upload's parts that does not end is refused", .timeLimit(.minutes(1)),
        arguments: ["endless", "new"])
    func endlessParts(kind: String) async throws {
        try await withStore("parts=\(kind)") { remote, _ in
            try remote.uploads.add(
                UploadRecord(
                    key: "top/large", identifier: "one", size: 10, partSize: 5, metadata: [:],
                    begun: FileTimestamp.now.seconds))
            let uploads = MultipartUploads(client: remote.client, journal: remote.uploads, width: 1)
            let failed = await failure { _ = try await uploads.resume("top/large", size: 10, partSize: 5, [:]) }
            #expect(failed?.code == .malformedResponse)
        }
    }

    @Test("S3-14: a rename that cannot be ended blocks no operation on its places")
    func renamingThatCannotBeEnded() async throws {
        try await withStore("keeps=top/a/") { remote, store in
            for name in ["a/1", "a/2"] {
                _ = try await store.ask("curl -sS -X PUT --data-binary x \"$at/bucket/top/\(name)\"")
            }
            let refused = await failure {
                _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            }
            #expect(refused?.code == .fileReadNoPermission)
            // The new place is what counts, and can be changed.
            _ = try await write("new", remote, if: .absent, to: "b/new")
            #expect(try await remote.entries(in: .root, from: nil, limit: 9).entries.map(\.name) == ["b"])
            // What is made in the old place is shown, with what could not be deleted there.
            _ = try await write("new", remote, if: .absent, to: "a/new")
            let names = try await remote.entries(in: RemotePath("a"), from: nil, limit: 9).entries.map(\.name)
            #expect(Set(names).isSuperset(of: ["1", "2", "new"]))
            #expect(remote.moves.records.isEmpty)
        }
    }

    @Test("S3-14: a rename whose end the server refuses as a wrong request blocks no other place", arguments: [2, 3])
    func renamingWhoseEndIsRefused(count: Int) async throws {
        try await withStore("keeps=top/a/", "refusal=InvalidRequest") { remote, store in
            for number in 1...count { try await store.put("x", to: "top/a/\(number)") }
            try await store.put("x", to: "top/other/file")
            await #expect(throws: FileProviderError.self) {
                try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            }
            #expect(remote.moves.records.map(\.stage) == [.deleting])
            let names = try await remote.entries(in: RemotePath("other"), from: nil, limit: 9).entries.map(\.name)
            #expect(names == ["file"])
            _ = try await write("new", remote, if: .absent, to: "other/new")
        }
    }

    @Test("S3-14: copies of an old rename that the server does not delete block no other place")
    func oldCopiesThatAreNotDeleted() async throws {
        try await withStore("keeps=top/b/", "refusal=InvalidRequest") { remote, store in
            let rename = MoveRecord(from: "top/a/", to: "top/b/", stage: .copying, begun: 0, identifier: "own")
            for key in ["top/a/1", "top/b/1", "top/other/file"] { try await store.put("text", to: key) }
            let tag = try #require(try await remote.client.object("top/b/1")).tag
            try await store.put("text", to: "top/b/1", mark: rename.mark(at: "top/b/1", ofCopied: tag))
            try remote.moves.save(rename)
            for _ in 1...2 {
                let names = try await remote.entries(in: RemotePath("other"), from: nil, limit: 9).entries.map(\.name)
                #expect(names == ["file"])
            }
            #expect(remote.moves.records.map(\.isTree) == [true] && remote.moves.isStuck(rename))
            // What is made in the new place is shown.
            _ = try await write("new", remote, if: .absent, to: "b/new")
            let names = try await remote.entries(in: RemotePath("b"), from: nil, limit: 9).entries.map(\.name)
            #expect(Set(names).isSuperset(of: ["new"]))
        }
    }

    @Test(
        "S3-6: a mode is not sent where the server may copy what another client has just written",
        arguments: ["lists=other", "ignores=sources"])
    func sourcesThatAreNotCompared(on server: String) async throws {
        // The object is overwritten after it was listed, and before it would be copied.
        try await withStore(server, "overtakes=HEAD top/file") { remote, store in
            try await store.put("one", to: "top/file")
            let before = try await remote.entry(at: RemotePath("file"))
            let (entry, notStored) = try await remote.set(
                RemoteAttributes(permissions: 0o640), of: RemotePath("file"), kind: .file)
            #expect(entry.tag == before.tag && notStored.contains(.permissions))
            try await store.put("theirs", to: "top/file")
            await #expect(throws: RemoteConditionFailure.self) {
                try await write("ours", remote, if: .unchanged(tag: before.tag))
            }
            #expect(try await store.ask("curl -sS \"$at/bucket/top/file\"") == "theirs")
        }
    }
}
