import FileProvider
import FileProviderPaths
import HTTPTransport
import TestSupport
import Testing

@testable import S3Provider

@Suite(.tags(.server)) struct DoubtfulWriteTests {
    @Test("S3-11: what was sent, not answered and arrives after all keeps no directory; what others put there does")
    func leftoversGoWithTheirDirectory() async throws {
        try await withBucket { bucket, remote in
            for (name, isOurs) in [("ours", true), ("others", false)] {
                let key = "\(bucket.prefix)\(name)/below/file"
                try await bucket.put(bucket.prefix + name + "/", "")
                let request = remote.client.request("PUT", key, body: .bytes(Array("text".utf8)))
                remote.client.ledger.noteUnknown(key, tag: request.tagOfWritten)
                try await bucket.put(key, isOurs ? "text" : "other text")
                let path = RemotePath([name])
                if isOurs {
                    try await remote.delete(path, kind: .directory, if: .empty)
                } else {
                    await #expect(throws: RemoteConditionFailure.self) {
                        try await remote.delete(path, kind: .directory, if: .empty)
                    }
                }
            }
            #expect(try await bucket.keys() == ["others/", "others/below/file"].map { bucket.prefix + $0 })
        }
    }

    @Test("S3-11: an object that was answered later, or was shown, counts as known until it is deleted")
    func existingObjectKeepsItsDirectory() async throws {
        try await withBucket { bucket, remote in
            for name in ["answered", "shown"] {
                let (key, path) = ("\(bucket.prefix)\(name)/file", RemotePath([name]))
                let request = remote.client.request("PUT", key, body: .bytes(Array(name.utf8)))
                remote.client.ledger.noteUnknown(key, tag: request.tagOfWritten)
                if name == "answered" {
                    _ = try await remote.client.attempt(request)
                } else {
                    try await bucket.put(key, name)
                    _ = try await remote.entries(in: path, from: nil, limit: 10)
                }
                await #expect(throws: RemoteConditionFailure.self, "\(name)") {
                    try await remote.delete(path, kind: .directory, if: .empty)
                }
                try await remote.delete(path.appending("file"), kind: .file, if: .always)
                // And now the first arrives.
                try await bucket.put(key, name)
                try await remote.delete(path, kind: .directory, if: .empty)
                #expect(try await bucket.keys() == [])
            }
        }
    }

    @Test("S3-11: the tag of what is sent is the one that the server gives it")
    func tagsOfWhatIsSent() async throws {
        try await withBucket { bucket, remote in
            let key = bucket.prefix + "file"
            let put = remote.client.request("PUT", key, body: .bytes(Array("text".utf8)))
            _ = try await remote.client.attempt(put)
            let original = try #require(try await remote.client.listed(key))
            #expect(put.tagOfWritten == original.tag)
            let copy = remote.client.request(
                "PUT", bucket.prefix + "copy",
                fields: [
                    "x-amz-copy-source": "/\(bucket.name)/\(key)", "x-amz-copy-source-if-match": original.tag,
                ])
            _ = try await remote.client.attempt(copy)
            #expect(copy.tagOfWritten == original.tag)
            #expect(try await remote.client.listed(bucket.prefix + "copy")?.tag == original.tag)
            let digest = remote.client.request(
                "PUT", key, fields: ["Content-MD5": "HLJR7A1WjeapKbUgxK7Y0Q=="],
                body: .pieces(count: 4) { nil })
            #expect(digest.tagOfWritten == original.tag)
            #expect(remote.client.request("DELETE", key).tagOfWritten == nil)
        }
    }

    @Test("S3-11: what was left in doubt is known after a SIGKILL, too, and not without end")
    func doubtsOutliveTheProcess() throws {
        let store = ReportingStore.temporary
        func start() -> OperationLedger {
            OperationLedger(LedgerState.Settings(grace: .seconds(2)...(.seconds(30))), in: store)
        }
        let first = start()
        #expect(!first.isLeftover("key", tag: "0"))
        first.noteUnknown("key", tag: "0")
        #expect(start().isLeftover("key", tag: "0"))
        #expect(!start().isLeftover("key", tag: "1"))
        for number in 0..<2000 { first.noteUnknown("other \(number)", tag: "0") }
        #expect(!first.isLeftover("key", tag: "0"))
        #expect(first.isLeftover("other 1999", tag: "0"))
    }
}
