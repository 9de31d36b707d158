import FileProvider
import FileProviderPaths
import FileProviderTesting
import HTTPTransport
import Synchronization
import TestSupport
import Testing

@testable import S3Provider

@Suite(.tags(.server)) struct MovingTests {
    private let paths = ["a/1", "a/2", "a/deep/er/3", "a/empty/", "a-other", "ab"]

    private func fill(_ bucket: Bucket) async throws {
        for path in paths { try await bucket.put(bucket.prefix + path, path) }
    }

    /// The keys below the prefix, without the objects with which preconditions are tried.
    private func keys(_ bucket: Bucket) async throws -> [String] {
        try await bucket.keys().map { String($0.dropFirst(bucket.prefix.count)) }.filter { !HiddenName.isOne($0) }
    }

    /// The names in the root, without those objects.
    private func shown(_ remote: S3Remote) async throws -> [String] {
        try await remote.entries(in: .root, from: nil, limit: 100).entries.map(\.name).filter { !HiddenName.isOne($0) }
    }

    private static let moved = ["a-other", "ab", "b/1", "b/2", "b/deep/er/3", "b/empty/"]

    @Test func aDirectoryMovesWithAllBelow() async throws {
        try await withBucket { bucket, remote in
            try await fill(bucket)
            let entry = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            #expect(entry.kind == .directory && entry.name == "b")
            #expect(try await keys(bucket) == Self.moved)
            #expect(try await bucket.get(bucket.prefix + "b/deep/er/3").text == "a/deep/er/3")
            #expect(remote.moves.records.isEmpty)
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.move(RemotePath("ab"), to: RemotePath("b"), kind: .file)
            }
        }
    }

    @Test(
        "a directory into which more and more comes is not renamed, and its copies go: another client may be copying them"
    )
    func growingDirectoryStays() async throws {
        try await withBucket(settings: .init(usualGrowth: 0, pauseAfterGrowth: 0.5...0.6)) { bucket, remote in
            try await fill(bucket)
            let writers = (1...3).map { writer in
                Task {
                    var number = 0
                    while !Task.isCancelled {
                        number += 1
                        try? await bucket.put(bucket.prefix + "a/new \(writer) \(number)", "new")
                        try? await Task.sleep(for: .milliseconds(50))
                    }
                }
            }
            let refused = await failure {
                _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            }
            for writer in writers { writer.cancel() }
            for writer in writers { await writer.value }
            #expect(refused?.code == .providerDomainTemporarilyUnavailable)
            #expect(remote.moves.records.isEmpty)
            let left = try await keys(bucket)
            #expect(!left.contains { $0.hasPrefix("b/") } && left.contains("a/deep/er/3"), "\(left)")
        }
    }

    /// Leaves what a daemon leaves that has ended after the first copy of a rename from "a" to "b".
    private func breakOff(_ bucket: Bucket, _ remote: S3Remote) async throws {
        try await fill(bucket)
        let rename = record(bucket, .copying)
        try remote.moves.save(rename)
        try await bucket.put(copy: bucket.prefix + "b/1", "a/1", of: rename)
    }

    @Test func renameContinuesAfterACrash() async throws {
        try await withBucket { bucket, remote in
            try await breakOff(bucket, remote)
            let again = try bucket.remote()
            let shown = try await shown(again)
            #expect(shown.sorted() == ["a", "a-other", "ab"])
            let hidden = await failure { _ = try await again.entry(at: RemotePath("b")) }
            #expect(hidden?.code == .noSuchItem)
            _ = try await again.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            #expect(try await keys(bucket) == Self.moved)
            #expect(again.moves.records.isEmpty)
            await again.close()
        }
    }

    @Test func aMoveThatIsNotWantedAnyMoreIsTakenBack() async throws {
        try await withBucket { bucket, remote in
            try await breakOff(bucket, remote)
            try await bucket.put(bucket.prefix + "b/theirs", "of another client")
            let again = try bucket.remote()
            _ = try await again.move(RemotePath("a"), to: RemotePath("c"), kind: .directory)
            #expect(
                try await keys(bucket) == [
                    "a-other", "ab", "b/theirs", "c/1", "c/2", "c/deep/er/3", "c/empty/",
                ])
            await again.close()
        }
    }

    @Test func interruptedDeletionEndsAtTheNextStart() async throws {
        try await withBucket { bucket, remote in
            try await fill(bucket)
            let rename = record(bucket, .deleting)
            for path in paths where path.hasPrefix("a/") {
                try await bucket.put(copy: bucket.prefix + "b/" + path.dropFirst(2), path, of: rename)
            }
            try await bucket.delete("a/1")
            // Written by another meanwhile: it has no copy, and stays.
            try await bucket.put(bucket.prefix + "a/new", "new")
            try remote.moves.save(rename)
            let again = try bucket.remote()
            let shown = try await shown(again)
            #expect(shown.sorted() == ["a", "a-other", "ab", "b"])
            #expect(try await keys(bucket) == ["a-other", "a/new", "ab"] + Self.moved.filter { $0.hasPrefix("b/") })
            #expect(again.moves.records.isEmpty)
            await again.close()
        }
    }

    @Test("WRITE-15: a domain that is read-only ends no renaming that was broken off, and a later start does")
    func readOnly() async throws {
        try await withBucket { bucket, remote in
            let rename = record(bucket, .deleting)
            try await bucket.put(bucket.prefix + "a/1", "x")
            try await bucket.put(copy: bucket.prefix + "b/1", "x", of: rename)
            try remote.moves.save(rename)
            let reader = try bucket.remote(isReadOnly: true)
            _ = try await reader.entries(in: .root, from: nil, limit: 100)
            #expect(try await keys(bucket) == ["a/1", "b/1"])
            #expect(reader.moves.records.count == 1)
            await reader.close()
            let again = try bucket.remote()
            _ = try await again.entries(in: .root, from: nil, limit: 100)
            #expect(try await keys(bucket) == ["b/1"])
            await again.close()
        }
    }

    @Test func removalDuringCopyStays() async throws {
        try await withBucket { bucket, remote in
            try await breakOff(bucket, remote)
            try await remote.delete(RemotePath("a/1".split(separator: "/").map(String.init)), kind: .file, if: .always)
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            #expect(try await keys(bucket) == Self.moved.filter { $0 != "b/1" })
        }
    }

    @Test("S3-7: what others wrote in the new place of a rename that is undone stays", arguments: ["theirs", "1, too"])
    func foreignContentInTheNewPlaceStays(text: String) async throws {
        try await withBucket { bucket, remote in
            try await fill(bucket)
            try remote.moves.save(record(bucket, .copying))
            let own = try await bucket.get(bucket.prefix + "a/1").text
            let foreign = String(text.prefix(own.utf8.count))
            try #require(foreign.utf8.count == own.utf8.count && foreign != own)
            try await bucket.put(bucket.prefix + "b/1", foreign)
            try await remote.delete(RemotePath(["a", "1"]), kind: .file, if: .always)
            #expect(try await bucket.get(bucket.prefix + "b/1").text == foreign)
        }
    }

    @Test("S3-7: what others wrote in the old place of a rename, when its copy was made, stays")
    func foreignContentInTheOldPlaceStays() async throws {
        try await withBucket { bucket, remote in
            try await bucket.put(bucket.prefix + "one", "own")
            _ = try await remote.move(RemotePath("one"), to: RemotePath("two"), kind: .file)
            try await bucket.put(bucket.prefix + "one", "her")
            let rename = MoveRecord(
                from: bucket.prefix + "one", to: bucket.prefix + "two", stage: .deleting,
                begun: FileTimestamp.now.seconds)
            let copy = try #require(try await remote.client.listed(rename.to))
            remote.records.didCopy([(copy, copy.key, copy.tag)], in: rename)
            try remote.moves.save(rename)
            let again = try bucket.remote()
            let shown = try await shown(again)
            #expect(shown.sorted() == ["one", "two"] && again.moves.records.isEmpty)
            #expect(try await keys(bucket) == ["one", "two"])
            await again.close()
        }
    }

    @Test("S3-15: what is half moved into a directory, or out of one, does not come along when that is moved")
    func halfDoneBelow() async throws {
        try await withBucket { bucket, remote in
            try await fill(bucket)
            try await bucket.put(bucket.prefix + "one", "one")
            for (from, to, text) in [("one", "a/deep/hidden", "one"), ("a/2", "two", "a/2")] {
                let rename = MoveRecord(
                    from: bucket.prefix + from, to: bucket.prefix + to, stage: .copying,
                    begun: FileTimestamp.now.seconds,
                    identifier: from)
                try await bucket.put(copy: rename.to, text, of: rename)
                try remote.moves.save(rename)
            }
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            #expect(try await keys(bucket) == Self.moved + ["one"])
            #expect(remote.moves.records.isEmpty)
        }
    }

    @Test func deletingThatAConnectionBrokeOffIsEndedByWhateverComesNext() async throws {
        try await withBucket { bucket, remote in
            try await fill(bucket)
            _ = try await remote.entry(at: .root)
            let rename = record(bucket, .deleting)
            for path in paths where path.hasPrefix("a/") {
                try await bucket.put(copy: bucket.prefix + "b/" + path.dropFirst(2), path, of: rename)
            }
            try remote.moves.save(rename)
            _ = try await remote.entry(at: RemotePath("ab"))
            #expect(try await keys(bucket) == Self.moved)
            #expect(remote.moves.records.isEmpty)
        }
    }

    @Test("S3-12: keys with characters that are markup in XML, and combining marks after them, are renamed")
    func markupInKeys() async throws {
        try await withBucket { bucket, remote in
            for name in ["1&\u{301}", "2<\u{FE0F}", "3&\u{FE0F}", "4\u{FFFF}"] {
                try await bucket.put("\(bucket.prefix)a/\(name)", "x")
            }
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            #expect(remote.moves.records.isEmpty)
            #expect(try await shown(remote) == ["b"])
        }
    }

    @Test("S3-14: a rename that the server does not let us end blocks no operation on its new place")
    func stuckDeletions() async throws {
        try await withBucket { bucket, remote in
            for path in ["a/1", "b/1"] { try await bucket.put(bucket.prefix + path, "x") }
            try remote.moves.save(record(bucket, .deleting))
            remote.moves.noteStuck(record(bucket, .deleting))
            _ = try await remote.makeDirectory(at: RemotePath(["b", "new"]), attributes: RemoteAttributes())
            // Nor is it tried with each change.
            #expect(try await keys(bucket) == ["a/1", "b/1", "b/new/"])
            #expect(remote.moves.records.count == 1)
        }
    }

    private func record(_ bucket: Bucket, _ stage: MoveRecord.Stage) -> MoveRecord {
        MoveRecord(
            from: bucket.prefix + "a/", to: bucket.prefix + "b/", stage: stage, begun: FileTimestamp.now.seconds,
            identifier: "own")
    }

    @Test("S3-16: a renaming has to do with what is in its places, and not with what is called almost like them")
    func onlyItsOwnPlacesAreOfConcern() async throws {
        let moves = MoveJournal(in: .temporary, ledger: OperationLedger())
        try moves.save(MoveRecord(from: "top/a/", to: "top/b/c/", stage: .copying, begun: 0))
        try moves.save(MoveRecord(from: "top/file", to: "top/other", stage: .copying, begun: 0))
        func concerned(_ key: String) -> [String] { moves.records(over: key).map(\.from).sorted() }
        for key in ["top/a", "top/a/", "top/a/x", "top/b/c/d/", "top/b", "top/b/"] {
            #expect(concerned(key) == ["top/a/"], "\(key)")
        }
        for key in ["top/file", "top/other", "top/file/"] { #expect(concerned(key) == ["top/file"], "\(key)") }
        for key in ["top/ab", "top/ab/", "top/a-b/x", "top/b/cd", "top/b/c.d/", "top/file2", "top/fil", "to"] {
            #expect(concerned(key) == [], "\(key)")
        }
        #expect(concerned("top/") == ["top/a/", "top/file"])
    }

    @Test func largeObjectsAreCopiedInParts() async throws {
        try await withBucket(settings: .init(largestCopy: 10_000)) { bucket, remote in
            let text = String(repeating: "0123456789", count: 2500)
            try await bucket.put(bucket.prefix + "large", text, fields: ["x-amz-meta-own": "kept"])
            let moved = try await remote.move(RemotePath("large"), to: RemotePath("moved"), kind: .file)
            #expect(moved.size == 25_000)
            let there = try await bucket.get(bucket.prefix + "moved")
            #expect(there.text == text && there.fields["x-amz-meta-own"] == "kept")
            #expect(try await keys(bucket) == ["moved"])
            #expect(remote.uploads.records.isEmpty)
        }
    }

    @Test func renamedMultipartObjectKeepsItsContent() async throws {
        try await withBucket(settings: .init(multipartThreshold: 100_000, partSize: 1 << 20)) { bucket, remote in
            try await bucket.put(bucket.prefix + "a/", "")
            var sent: RemoteEntry?
            try await withContent([UInt8](repeating: 7, count: 3 << 20)) {
                sent = try await remote.write(
                    $0, to: RemotePath("a/large"), attributes: RemoteAttributes(), if: .absent)
            }
            let tag = try #require(sent?.tag)
            let moved = try await remote.move(RemotePath("a/large"), to: RemotePath("a/moved"), kind: .file)
            #expect(moved.tag == tag)
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            let listed = try await remote.entries(in: RemotePath("b"), from: nil, limit: 10).entries
            #expect(listed.map(\.tag) == [tag])
            // The server itself lists another one now.
            #expect(
                try await remote.client.listed(bucket.prefix + "b/moved")?.tag != String(decoding: tag, as: UTF8.self))
            _ = try await remote.read(RemotePath("b/moved"), tag: tag, range: 5..<10, into: CollectingSink())
            try await withContent([1, 2, 3]) {
                _ = try await remote.write(
                    $0, to: RemotePath("b/moved"), attributes: RemoteAttributes(), if: .unchanged(tag: tag))
            }
            #expect(try await bucket.get(bucket.prefix + "b/moved").body == [1, 2, 3])
        }
    }

    @Test("PATH-8: what was sent without an answer is known by its date after its directory was renamed, too")
    func unansweredContentIsKnownInANewPlace() async throws {
        try await withBucket { bucket, remote in
            try await bucket.put(bucket.prefix + "a/file", "text")
            let date = FileTimestamp(seconds: 1_000_000, nanoseconds: 5)
            let tag = try #require(try await remote.client.listed(bucket.prefix + "a/file")).tag
            remote.records.sent.note(bucket.prefix + "a/file", .tag(Array(tag.utf8)), date: date)
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            let entry = try await remote.entry(at: RemotePath(["b", "file"]))
            #expect(entry.attributes.contentModificationDate == date)
        }
    }

    @Test func anEmptyDirectoryIsDeletedAndNothingElse() async throws {
        try await withBucket { bucket, remote in
            try await bucket.put(bucket.prefix + "a/", "")
            try await bucket.put(bucket.prefix + "a/.yonder-partial-1", "x")
            try await bucket.put(bucket.prefix + "b/", "")
            try await bucket.put(bucket.prefix + "b/theirs", "theirs")
            try await remote.delete(RemotePath("a"), kind: .directory, if: .empty)
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(RemotePath("b"), kind: .directory, if: .empty)
            }
            #expect(failure?.present?.kind == .directory)
            #expect(try await keys(bucket) == ["b/", "b/theirs"])
        }
    }

    @Test("S3-14: a directory whose files are all removed at once is still there")
    func emptiedDirectoryStays() async throws {
        try await withBucket { bucket, remote in
            let names = (0..<20).map { "file \($0)" }
            for name in names { try await bucket.put(bucket.prefix + "a/" + name, "x") }
            try await withThrowingTaskGroup { group in
                for (index, name) in names.enumerated() {
                    group.addTask {
                        let path = RemotePath(["a", name])
                        if index % 2 == 0 { return try await remote.delete(path, kind: .file, if: .always) }
                        _ = try await remote.move(path, to: RemotePath([name]), kind: .file)
                    }
                }
                try await group.waitForAll()
            }
            let left = names.indices.filter { $0 % 2 == 1 }.map { names[$0] }
            #expect(try await Set(keys(bucket)) == Set(left + ["a/"]))
        }
    }

    private final class Waits: Sendable {
        private let begun = Mutex(0)
        var count: Int { begun.withLock { $0 } }
        func note(_ isWaiting: Bool) { begun.withLock { $0 += isWaiting ? 1 : 0 } }
    }

    @Test(
        "HTTP-1: only the copy of a large object is long: the call is not watched meanwhile",
        arguments: [7, LongCopies.largestShort, LongCopies.largestShort + 1, nil] as [Int64?])
    func copies(of size: Int64?) async throws {
        try await StrictStoreProgram.withRemote(["plain"]) { store, remote, _ in
            try await store.put("content", to: "top/file")
            let (client, waits) = (remote.client, Waits())
            let context = CallContext(urgency: CallUrgency(true), wait: { waits.note($0) })
            let tag = try await CallContext.$current.withValue(context) {
                try await client.sendForResult(copying: size) {
                    client.request("PUT", "top/copy", fields: ["x-amz-copy-source": client.copySource("top/file")])
                }
            }
            #expect(tag != nil)
            let isLong = size.map { $0 > LongCopies.largestShort } ?? true
            #expect(waits.count == (isLong ? 1 : 0))
        }
    }

    @Test func manyAreDeletedTogether() async throws {
        try await withBucket { bucket, remote in
            for number in 0..<25 { try await bucket.put(bucket.prefix + "many/<&>'\" \(number)", "x") }
            try await bucket.put(bucket.prefix + "many-more", "x")
            try await remote.delete(RemotePath("many"), kind: .directory, if: .always)
            #expect(try await keys(bucket) == ["many-more"])
        }
    }
}
