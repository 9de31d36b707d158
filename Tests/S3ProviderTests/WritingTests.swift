import FileProvider
import FileProviderPaths
import FileProviderTesting
import HTTPTransport
import SystemPackage
import TestSupport
import Testing

@testable import S3Provider

@Suite(.tags(.server)) struct WritingTests {
    private static let small = { () -> S3Settings in
        let settings = S3Settings(multipartThreshold: 100_000, partSize: 1 << 20, width: 2)
        return settings
    }()

    private func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 31 &+ $0 / 255) }
    }

    @Test func conditionsHoldAlsoWhereTheServerKnowsNone() async throws {
        try await withBucket { bucket, remote in
            let path = RemotePath("file")
            func write(_ text: String, if condition: RemoteCondition) async throws -> RemoteEntry {
                var entry: RemoteEntry?
                try await withContent(Array(text.utf8)) {
                    entry = try await remote.write($0, to: path, attributes: RemoteAttributes(), if: condition)
                }
                return try #require(entry)
            }
            let first = try await write("one", if: .absent)
            await #expect(throws: RemoteConditionFailure.self) { try await write("two", if: .absent) }
            let second = try await write("two", if: .unchanged(tag: first.tag))
            await #expect(throws: RemoteConditionFailure.self) {
                try await write("three", if: .unchanged(tag: first.tag))
            }
            #expect(try await bucket.get(bucket.prefix + "file").text == "two")
            // Keys below the name are in the way as well.
            try await bucket.put(bucket.prefix + "folder/x", "")
            try await withContent([1]) { source in
                await #expect(throws: RemoteConditionFailure.self) {
                    try await remote.write(
                        source, to: RemotePath("folder"), attributes: RemoteAttributes(), if: .absent)
                }
                let orphan = await failure {
                    _ = try await remote.write(
                        source, to: RemotePath("missing/file"), attributes: RemoteAttributes(), if: .absent)
                }
                #expect(orphan?.code == .noSuchItem)
            }
            #expect(try await remote.entry(at: path).tag == second.tag)
            #expect(!remote.traits.checksConditions && remote.traits.peculiarities.count == 1)
            #expect(try await bucket.keys().allSatisfy { !$0.contains(".yonder-partial-") })
        }
    }

    @Test func datesAndModesAreThoseOfOtherTools() async throws {
        try await withBucket { bucket, remote in
            let date = FileTimestamp(seconds: 1_234_567_890, nanoseconds: 12_345_678)
            try await withContent(Array("text".utf8)) { source in
                let entry = try await remote.write(
                    source, to: RemotePath("a"),
                    attributes: RemoteAttributes(contentModificationDate: date, permissions: 0o640), if: .absent)
                #expect(entry.attributes.contentModificationDate == date)
            }
            let head = try await bucket.get(bucket.prefix + "a").head
            #expect(head.fields["x-amz-meta-mtime"] == "1234567890.012345678")
            #expect(head.fields["x-amz-meta-mode"] == "33184")
            // A listing shows it too, also after a rename, and in another life.
            let moved = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .file)
            #expect(moved.attributes.contentModificationDate == date)
            let again = try bucket.remote()
            let listed = try await again.entries(in: .root, from: nil, limit: 10).entries
            #expect(listed.map(\.attributes.contentModificationDate) == [date])
            #expect(listed.map(\.attributes.permissions) == [0o640])
            let touched = FileTimestamp(seconds: 1_300_000_000)
            let (entry, notStored) = try await again.set(
                RemoteAttributes(contentModificationDate: touched), of: RemotePath("b"), kind: .file)
            #expect(entry.attributes.contentModificationDate == touched && entry.tag == moved.tag)
            #expect(!notStored.contains(.contentModificationDate) && entry.attributes.permissions == 0o640)
            let kept = try await bucket.get(bucket.prefix + "b").fields
            #expect(kept["x-amz-meta-mtime"] == "1300000000" && kept["x-amz-meta-mode"] == "33184")
            let executable = try await again.set(
                RemoteAttributes(permissions: 0o755), of: RemotePath("b"), kind: .file)
            #expect(executable.entry.attributes.permissions == 0o755 && !executable.notStored.contains(.permissions))
            #expect(executable.entry.attributes.contentModificationDate == touched && executable.entry.tag == moved.tag)
            let changed = try await bucket.get(bucket.prefix + "b").fields
            #expect(changed["x-amz-meta-mtime"] == "1300000000" && changed["x-amz-meta-mode"] == "33261")
            await again.close()
        }
    }

    @Test(
        "S3-4: a date is written in the digits that other tools read, also one before 1970",
        arguments: [
            (1_500_000_000, "1.500000000"), (1, "0.000000001"), (0, "0"), (-500_000_000, "-0.500000000"),
            (-1_500_000_000, "-1.500000000"), (-2_000_000_000, "-2"),
        ] as [(Int64, String)])
    func dates(nanoseconds: Int64, text: String) {
        let date = FileTimestamp(nanosecondsSince1970: nanoseconds)
        let fields = ObjectMetadata.fields(RemoteAttributes(contentModificationDate: date))
        #expect(fields["x-amz-meta-mtime"] == text)
        #expect(ObjectMetadata.date(fields) == date)
    }

    @Test func aCopyOnItsWayElsewhereChangesNoDate() async throws {
        try await withBucket { _, remote in
            let (date, other) = (FileTimestamp(seconds: 1_234_567_890), FileTimestamp(seconds: 1_300_000_000))
            try await withContent(Array("text".utf8)) { source in
                let written = try await remote.write(
                    source, to: RemotePath("a"), attributes: RemoteAttributes(contentModificationDate: date),
                    if: .absent)
                // As while `b/a` of the same content is being sent.
                remote.records.sent.note("a", .tag(written.tag), date: other)
            }
            let listed = try await remote.entries(in: .root, from: nil, limit: 10).entries
            #expect(listed.map(\.attributes.contentModificationDate) == [date])
        }
    }

    @Test func foreignMetadataIsShownAfterReading() async throws {
        try await withBucket { bucket, remote in
            try await bucket.put(
                bucket.prefix + "a", "text", fields: ["x-amz-meta-mtime": "1111111111.5", "x-amz-meta-mode": "33261"])
            let first = try await remote.entry(at: RemotePath("a"))
            #expect(
                first.attributes.contentModificationDate
                    != FileTimestamp(seconds: 1_111_111_111, nanoseconds: 500_000_000))
            _ = try await remote.read(RemotePath("a"), tag: first.tag, range: 1..<3, into: CollectingSink())
            let second = try await remote.entry(at: RemotePath("a"))
            #expect(
                second.attributes.contentModificationDate
                    == FileTimestamp(seconds: 1_111_111_111, nanoseconds: 500_000_000))
            #expect(first.attributes.permissions == nil && second.attributes.permissions == 0o755)
        }
    }

    @Test(
        "S3-4: new content keeps the mode of an object that was not read here, also after a rename",
        arguments: [false, true])
    func unreadModes(isRenamed: Bool) async throws {
        try await withBucket { bucket, remote in
            var path = RemotePath("a")
            try await bucket.put(bucket.prefix + "a", "theirs", fields: ["x-amz-meta-mode": "33261"])
            var there = try await remote.entry(at: path)
            #expect(there.attributes.permissions == nil)
            if isRenamed {
                there = try await remote.move(path, to: RemotePath("b"), kind: .file)
                path = RemotePath("b")
            }
            let attributes = RemoteAttributes(contentModificationDate: FileTimestamp(seconds: 1_234_567_890))
            let (place, tag) = (path, there.tag)
            let written = try await withContent(Array("ours".utf8)) {
                try await remote.write($0, to: place, attributes: attributes, if: .unchanged(tag: tag))
            }
            #expect(written.attributes.permissions == 0o755)
            let answer = try await bucket.get(bucket.prefix + (isRenamed ? "b" : "a"))
            #expect(answer.text == "ours" && answer.fields["x-amz-meta-mode"] == "33261")
            #expect(answer.fields["x-amz-meta-mtime"] == "1234567890")
        }
    }

    @Test("S3-4: the mode of what was sent without an answer is known") func unansweredModes() async throws {
        try await withBucket { bucket, remote in
            let key = bucket.prefix + "a"
            try await bucket.put(key, "text", fields: ["x-amz-meta-mode": "33184"])
            let object = try #require(try await remote.client.listed(key))
            let date = FileTimestamp(seconds: 1_234_567_890)
            remote.records.willWrite(
                key, tag: object.tag, RemoteAttributes(contentModificationDate: date, permissions: 0o640))
            let entry = try await remote.entry(at: RemotePath("a"))
            #expect(entry.attributes.permissions == 0o640 && entry.attributes.contentModificationDate == date)
        }
    }

    @Test(
        "a mode in metadata is that of a file, in the digits of s3fs or those of rclone",
        arguments: [
            ("33188", 0o644), ("100664", 0o664), ("0100600", 0o600), ("33261", 0o755), ("644", nil), ("16877", nil),
            ("-1", nil),
            ("x", nil), ("99999999999", nil),
        ] as [(String, UInt16?)])
    func modes(text: String, permissions: UInt16?) {
        #expect(ObjectMetadata.attributes(["x-amz-meta-mode": text]).permissions == permissions)
    }

    @Test func anUploadInPartsGoesOnAfterARestart() async throws {
        try await withBucket(settings: Self.small) { bucket, remote in
            let path = RemotePath("large")
            let first = pattern(5 << 20)
            let interrupted = await failure {
                try await withContent(first, confirm: { throw FileProviderError(.userCancelled, "written") }) {
                    _ = try await remote.write($0, to: path, attributes: RemoteAttributes(), if: .absent)
                }
            }
            #expect(interrupted?.message == "written")
            #expect(try await bucket.keys().isEmpty)
            let record = try #require(remote.uploads.records.first)

            // Another life, and content of which one part is another.
            let again = try bucket.remote(settings: Self.small)
            #expect(again.uploads.records == [record])
            var second = first
            second[2 << 20] ^= 0xFF
            try await withContent(second) {
                let entry = try await again.write($0, to: path, attributes: RemoteAttributes(), if: .absent)
                #expect(entry.size == 5 << 20)
            }
            let sink = CollectingSink()
            _ = try await again.read(path, tag: nil, range: nil, into: sink)
            #expect(try sink.bytes(in: 0..<(5 << 20)) == second)
            #expect(again.uploads.records.isEmpty)
            await again.close()
        }
    }

    @Test func onlyPartsThatAreMissingAreSentAgain() async throws {
        try await withBucket(settings: Self.small) { bucket, remote in
            let content = pattern(4 << 20)
            _ = await failure {
                try await withContent(content, confirm: { throw FileProviderError(.userCancelled) }) {
                    _ = try await remote.write($0, to: RemotePath("large"), attributes: RemoteAttributes(), if: .absent)
                }
            }
            let record = try #require(remote.uploads.records.first)
            let before = try await parts(of: record, bucket)
            #expect(before.count >= 2)
            try await Task.sleep(for: .milliseconds(1100))
            // Broken off once more, after all parts are there.
            _ = await failure {
                try await withContent(content, confirm: { throw FileProviderError(.userCancelled) }) {
                    _ = try await remote.write($0, to: RemotePath("large"), attributes: RemoteAttributes(), if: .absent)
                }
            }
            let after = try await parts(of: record, bucket)
            #expect(before.allSatisfy { after[$0.key] == $0.value })
            // Another size is another upload: the old one is given up.
            try await withContent(pattern(3 << 20)) {
                _ = try await remote.write($0, to: RemotePath("large"), attributes: RemoteAttributes(), if: .absent)
            }
            #expect(try await parts(of: record, bucket).isEmpty)
            #expect(remote.uploads.records.isEmpty)
        }
    }

    @Test("S3-8: an upload that was begun more than a week ago is dropped by the next start, and a later one is not")
    func unfinishedUploads() async throws {
        try await withBucket(settings: Self.small) { bucket, remote in
            for name in ["later", "old"] {
                _ = await failure {
                    try await withContent(pattern(3 << 20), confirm: { throw FileProviderError(.userCancelled) }) {
                        _ = try await remote.write(
                            $0, to: RemotePath(name), attributes: RemoteAttributes(), if: .absent)
                    }
                }
            }
            var old = try #require(remote.uploads.records.first { $0.key.hasSuffix("/old") })
            var later = try #require(remote.uploads.records.first { $0.key.hasSuffix("/later") })
            (old.begun, later.begun) = (FileTimestamp.now.seconds - 8 * 86_400, FileTimestamp.now.seconds - 6 * 86_400)
            for record in [old, later] { try remote.uploads.add(record) }
            let next = try bucket.remote(settings: Self.small)
            _ = try await next.entries(in: .root, from: nil, limit: 10)
            let isDropped = await eventually(within: .seconds(20)) { next.uploads.records == [later] }
            #expect(isDropped)
            #expect(try await parts(of: old, bucket).isEmpty)
            #expect(try await !parts(of: later, bucket).isEmpty)
            await next.close()
        }
    }

    @Test("S3-8: an upload that was begun more than a week ago is dropped also while the daemon runs")
    func unfinishedUploadsLater() async throws {
        var settings = Self.small
        settings.tidyingPause = .zero
        try await withBucket(settings: settings) { bucket, remote in
            _ = await failure {
                try await withContent(pattern(3 << 20), confirm: { throw FileProviderError(.userCancelled) }) {
                    _ = try await remote.write($0, to: RemotePath("old"), attributes: RemoteAttributes(), if: .absent)
                }
            }
            var old = try #require(remote.uploads.records.first)
            old.begun = FileTimestamp.now.seconds - 8 * 86_400
            try remote.uploads.add(old)
            _ = try await remote.entries(in: .root, from: nil, limit: 10)
            let isDropped = await eventually(within: .seconds(20)) { remote.uploads.records.isEmpty }
            #expect(isDropped)
            #expect(try await parts(of: old, bucket).isEmpty)
        }
    }

    /// When each part of an upload was written.
    private func parts(of record: UploadRecord, _ bucket: Bucket) async throws -> [String: String] {
        do {
            let answer = try await bucket.client.send {
                bucket.client.request("GET", record.key, query: [("uploadId", record.identifier)])
            }
            let parts = try XMLReader.document(answer.body).children.filter { $0.name.local == "Part" }
            return Dictionary(
                uniqueKeysWithValues: parts.map {
                    ($0.child("PartNumber")?.text ?? "", $0.child("LastModified")?.text ?? "")
                })
        } catch let failure as S3Failure where failure.status == 404 {
            return [:]
        }
    }
}
