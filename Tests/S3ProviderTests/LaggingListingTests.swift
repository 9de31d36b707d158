import FileProvider
import FileProviderPaths
import HTTPTransport
import TestSupport
import Testing

@testable import S3Provider

/// Listings that are older than what the server has answered, as OpenStack Swift gives them when it is busy.
@Suite(.tags(.server)) struct LaggingListingTests {
    private func shown(_ listing: S3Listing) -> [String] {
        listing.entries.map { entry in
            if case .object(let object) = entry { return "\(object.key) \(object.tag) \(object.size)" }
            return entry.key
        }
    }

    @Test("S3-10: what was acknowledged counts for more than an older listing", arguments: [true, false])
    func isPutRight(isFlat: Bool) async throws {
        try await withBucket { bucket, remote in
            let client = remote.client
            func put(_ path: String, _ text: String) async throws {
                let key = bucket.prefix + path
                _ = try await client.send { client.request("PUT", key, body: .bytes(Array(text.utf8))) }
            }
            for path in ["d/changed", "d/gone", "d/kept", "d/old/only", "d/some/one", "d/some/two"] {
                // By another client.
                try await bucket.put(bucket.prefix + path, path)
            }
            let prefix = bucket.prefix + "d/"
            let old = try await client.list(prefix: prefix, isFlat: isFlat)
            try await put("d/changed", "other content")
            try await put("d/made", "new")
            try await put("d/new/below", "new")
            try await remote.deleter.delete(["d/gone", "d/old/only", "d/some/one"].map { bucket.prefix + $0 })
            let now = try await client.list(prefix: prefix, isFlat: isFlat)
            #expect(shown(now) != shown(old))
            let right = try await client.current(
                old, prefix: prefix, isFlat: isFlat, isFirst: true, requestedAt: client.ledger.now)
            #expect(shown(right) == shown(now))
            #expect(client.listsLate)
            // Nothing is said of what another part of the listing is about.
            var part = S3Listing(entries: Array(old.entries.prefix(1)), next: "more", unreadable: 0)
            part = try await client.current(
                part, prefix: prefix, isFlat: isFlat, isFirst: true, requestedAt: client.ledger.now)
            #expect(shown(part) == Array(shown(now).prefix(1)))
        }
    }

    @Test(
        "S3-10: an older listing brings back no object whose deletion had no response", arguments: [true, false])
    func deletionWithoutResponse(isFlat: Bool) async throws {
        try await withBucket { bucket, remote in
            let client = remote.client
            let (prefix, keys) = (bucket.prefix + "d/", ["theirs", "own"].map { bucket.prefix + "d/" + $0 })
            try await bucket.put(keys[0], "theirs")
            _ = try await client.send { client.request("PUT", keys[1], body: .bytes([1])) }
            let old = try await client.list(prefix: prefix, isFlat: isFlat)
            #expect(old.entries.count == 2)
            for key in keys {
                let request = client.ledger.send([key])
                try await bucket.delete(String(key.dropFirst(bucket.prefix.count)))
                client.ledger.end(request, .unknown(.deleted))
            }
            func current() async throws -> S3Listing {
                try await client.current(
                    old, prefix: prefix, isFlat: isFlat, isFirst: true, requestedAt: client.ledger.now)
            }
            #expect(try await current().entries.isEmpty)
            // The doubt is over: a look decides, and a listing that agrees with it costs no further request.
            try await client.settleDoubts(over: [.below(prefix)])
            #expect(try await current().entries.isEmpty)
            #expect(client.ledger.recentChanges(below: prefix).allSatisfy { !$0.isUncertain && $0.effect == .deleted })
            #expect(try await current().entries.isEmpty)
        }
    }

    @Test("S3-10: an older listing is put right by the next process, too", arguments: [true, false])
    func isPutRightAfterARestart(isFlat: Bool) async throws {
        try await withBucket { bucket, remote in
            let prefix = bucket.prefix + "d/"
            for name in ["changed", "gone", "kept"] { try await bucket.put(prefix + name, name) }
            let old = try await remote.client.list(prefix: prefix, isFlat: isFlat)
            for (name, text) in [("changed", "other content"), ("made", "new")] {
                let key = prefix + name
                _ = try await remote.client.send { [client = remote.client] in
                    client.request("PUT", key, body: .bytes(Array(text.utf8)))
                }
            }
            try await remote.deleter.delete([prefix + "gone"])
            let now = try await remote.client.list(prefix: prefix, isFlat: isFlat)
            #expect(shown(now) != shown(old))
            remote.client.ledger.close()

            let next = try bucket.remote()
            let right = try await next.client.current(
                old, prefix: prefix, isFlat: isFlat, isFirst: true, requestedAt: next.client.ledger.now)
            #expect(shown(right) == shown(now))
            // That its listings are late is known from then on.
            let last = try bucket.remote()
            #expect(next.client.listsLate && last.client.listsLate)
            await next.close()
            await last.close()
        }
    }

    @Test("S3-10: a directory in which an object was deleted and another written is not missing in an older listing")
    func deletionBeforeAWrite() async throws {
        try await withBucket { bucket, remote in
            let client = remote.client
            let prefix = bucket.prefix + "d/"
            try await bucket.put(prefix + "kept", "kept")
            let old = try await client.list(prefix: prefix, isFlat: false)
            _ = try await client.send { client.request("PUT", prefix + "sub/a", body: .bytes([1])) }
            try await remote.deleter.delete([prefix + "sub/a"])
            _ = try await client.send { client.request("PUT", prefix + "sub/b", body: .bytes([1])) }
            #expect(shown(old).count == 1)
            let right = try await client.current(
                old, prefix: prefix, isFlat: false, isFirst: true, requestedAt: client.ledger.now)
            #expect(right.entries.map(\.key) == ["kept", "sub/"].map { prefix + $0 })
        }
    }

    @Test("S3-10: a directory that was made just before a SIGKILL is there, although no listing shows it yet")
    func directoryBeforeAKill() async throws {
        try await StrictStoreProgram.withRemote(["unlisted=top/d/"]) { store, remote, scratch in
            _ = try await remote.makeDirectory(at: RemotePath("d"), attributes: RemoteAttributes())
            // The ledger of the first one is not closed.
            let next = try store.remote(stateDirectory: scratch["state"])
            try await withCleanUp({ await next.close() }) {
                #expect(try await next.entry(at: RemotePath("d")).kind == .directory)
                #expect(try await next.entries(in: RemotePath("d"), from: nil, limit: 9).entries.isEmpty)
                #expect(try await next.entries(in: .root, from: nil, limit: 9).entries.map(\.name) == ["d"])
                _ = try await next.makeDirectory(at: RemotePath("d/below"), attributes: RemoteAttributes())
            }
        }
    }

    @Test("S3-10: an object that another client has changed since is as the listing says")
    func othersCount() async throws {
        try await withBucket { bucket, remote in
            let client = remote.client
            let (written, deleted) = (bucket.prefix + "written", bucket.prefix + "deleted")
            _ = try await client.send { client.request("PUT", written, body: .bytes([1])) }
            try await remote.deleter.delete([deleted])
            try await bucket.put(written, "theirs")
            try await bucket.put(deleted, "theirs")
            let names = try await remote.entries(in: .root, from: nil, limit: 10).entries
            #expect(names.map(\.name) == ["deleted", "written"] && names.allSatisfy { $0.size == 6 })
            #expect(!client.listsLate)
            // Nor is that asked for again.
            #expect(client.ledger.recentChanges(below: bucket.prefix).isEmpty)
        }
    }

    @Test("S3-10: a listing that was requested before a write or a deletion ended is corrected, and is not late")
    func overlappingListing() async throws {
        try await StrictStoreProgram.withRemote(["plain", "awaits=top/d/new"]) { store, remote, _ in
            let client = remote.client
            for name in ["changed", "gone", "sub/gone"] { try await store.put("theirs", to: "top/d/\(name)") }
            let before = try await store.log().count
            async let listing = client.list(prefix: "top/d/", isFlat: false)
            // The store has made the listing, and keeps it until the last of these is written.
            #expect(try await eventually { try await store.log().dropFirst(before).contains("GET") })
            try await remote.deleter.delete(["top/d/gone", "top/d/sub/gone"])
            for key in ["top/d/changed", "top/d/other/new", "top/d/new"] {
                _ = try await client.send { client.request("PUT", key, body: .bytes([1])) }
            }
            let names = try await listing.entries.map(\.key)
            #expect(names == ["changed", "new", "other/", "sub/"].map { "top/d/" + $0 })
            #expect(!client.listsLate)
            let next = try await client.list(prefix: "top/d/", isFlat: false)
            #expect(next.entries.map(\.key) == Array(names.dropLast()))
        }
    }
}
