import FileProvider
import FileProviderPaths
import FileProviderTesting
import HTTPTransport
import TestSupport
import Testing

@testable import S3Provider

/// Which objects in the new place of a rename are its copies, where other clients copy and write to the same keys.
@Suite(.tags(.server)) struct OwnCopiesTests {
    private func rename(_ from: String, _ to: String, _ stage: MoveRecord.Stage) -> MoveRecord {
        MoveRecord(from: from, to: to, stage: stage, begun: FileTimestamp.now.seconds, identifier: "own")
    }

    /// Makes an object with the mark of a rename as the copy of an object with an ETag; nil: of one with the same content.
    private func putCopy(
        _ text: String, to key: String, of rename: MoveRecord, madeOf tag: String? = nil, _ store: StrictStoreProgram,
        _ remote: S3Remote
    ) async throws {
        try await store.put(text, to: key)
        let present = try #require(try await remote.client.object(key)).tag
        try await store.put(text, to: key, mark: rename.mark(at: key, ofCopied: tag ?? present))
    }

    /// A rename of "top/a/" to "top/b/", with an object in each: a copy of its own or of another machine's rename.
    private func begin(
        _ stage: MoveRecord.Stage, hasCopied isOwn: Bool, _ store: StrictStoreProgram, _ remote: S3Remote
    ) async throws -> MoveRecord {
        let own = rename("top/a/", "top/b/", stage)
        var other = own
        other.identifier = "other"
        try await store.put("text", to: "top/a/1")
        try await putCopy("text", to: "top/b/1", of: isOwn ? own : other, store, remote)
        return own
    }

    @Test(
        "S3-7: an object that another client copies to the new place of a rename is not the rename's copy",
        arguments: ["plain", "ignores"])
    func foreignCopy(on server: String) async throws {
        try await StrictStoreProgram.withRemote([server, "arrives=top/moved"]) { store, remote, _ in
            // What arrives there has the same content, and so the same ETag.
            try await store.put("theirs", to: "top/file")
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.move(RemotePath("file"), to: RemotePath("moved"), kind: .file)
            }
            #expect(try await store.keys().filter { !$0.contains("/.yonder-") } == ["top/file", "top/moved"])
            #expect(remote.moves.records.isEmpty)
        }
    }

    @Test(
        "S3-7: what another client writes over a copy is not the copy, also if it has the same size",
        arguments: ["top/moved", "top/b/1"])
    func writtenOverCopy(key: String) async throws {
        try await StrictStoreProgram.withRemote(["encrypts", "follows=\(key)"]) { store, remote, _ in
            let isTree = key == "top/b/1"
            try await store.put("mine!!", to: isTree ? "top/a/1" : "top/file")
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.move(
                    RemotePath(isTree ? "a" : "file"), to: RemotePath(isTree ? "b" : "moved"),
                    kind: isTree ? .directory : .file)
            }
            #expect(try await store.ask("curl -sS \"$at/bucket/\(key)\"") == "theirs")
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            #expect(keys == (isTree ? ["top/a/1"] : ["top/file"]) + [key])
            #expect(remote.moves.records.isEmpty)
        }
    }

    @Test(
        "S3-7: a rename that is undone deletes its own copies, and no copies of another machine",
        arguments: [true, false])
    func undoneRename(isOwn: Bool) async throws {
        try await StrictStoreProgram.withRemote(["plain"]) { store, remote, _ in
            let own = try await begin(.copying, hasCopied: isOwn, store, remote)
            try remote.moves.save(own)
            _ = try await remote.move(RemotePath("a"), to: RemotePath("c"), kind: .directory)
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            #expect(keys == (isOwn ? [] : ["top/b/1"]) + ["top/c/1"])
        }
    }

    @Test(
        "S3-7: a copy in parts is the rename's own by its mark, because servers may not check that its key is free",
        arguments: [true, false])
    func undoneCopyInParts(isOwn: Bool) async throws {
        try await StrictStoreProgram.withRemote(["plain"], settings: .init(largestCopy: 3)) { store, remote, _ in
            // Both machines have completed a copy at the same moment, and got the same ETag.
            let own = try await begin(.copying, hasCopied: isOwn, store, remote)
            let original = try #require(try await remote.client.listed("top/a/1"))
            remote.records.didCopy([(original, "top/b/1", original.tag)], in: own)
            try remote.moves.save(own)
            #expect(await remote.preconditions.support().onCopying)
            try await remote.delete(RemotePath("a/1"), kind: .file, if: .always)
            #expect(try await store.keys().contains("top/b/1") == !isOwn)
        }
    }

    @Test("S3-7: a rename deletes no original that only another machine has copied", arguments: [true, false])
    func endedRename(isOwn: Bool) async throws {
        try await StrictStoreProgram.withRemote(["plain"]) { store, remote, _ in
            let own = try await begin(.deleting, hasCopied: isOwn, store, remote)
            try remote.moves.save(own)
            _ = try await remote.entry(at: .root)
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            #expect(keys == (isOwn ? [] : ["top/a/1"]) + ["top/b/1"])
            #expect(remote.moves.records.isEmpty)
        }
    }

    @Test("PATH-8: a copy whose response was lost is the rename's own", arguments: ["plain", "ignores", "encrypts"])
    func lostResponse(on server: String) async throws {
        try await StrictStoreProgram.withRemote([server, "loses=top/moved"]) { store, remote, _ in
            try await store.put("text", to: "top/file")
            #expect(try await remote.move(RemotePath("file"), to: RemotePath("moved"), kind: .file).size == 4)
            #expect(try await store.keys().filter { !$0.contains("/.yonder-") } == ["top/moved"])
        }
        try await StrictStoreProgram.withRemote([server, "loses=top/b/2"]) { store, remote, _ in
            for number in 1...3 { try await store.put("text", to: "top/a/\(number)") }
            _ = try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            #expect(keys == ["top/b/1", "top/b/2", "top/b/3"])
        }
    }

    /// The ETag that another object had when a rename copied it.
    private static let otherTag = "\"9a0364b9e99bb480dd25e1f0284c8555\""

    private func warnings(_ remote: S3Remote) throws -> [String] {
        try #require(remote.manager as? TestManager).warnings
    }

    @Test(
        "S3-12: a copy that was made before a SIGKILL, and whose original has changed since, is not replaced",
        arguments: ["plain", "ignores"], [true, false])
    func changedOriginal(on server: String, isOwn: Bool) async throws {
        try await StrictStoreProgram.withRemote([server]) { store, remote, _ in
            let own = rename("top/a/", "top/b/", .copying)
            try await store.put("newer", to: "top/a/1")
            try await store.put("same", to: "top/a/2")
            // Otherwise another client has written it since, with a tool that keeps metadata.
            try await putCopy("old", to: "top/b/1", of: own, madeOf: isOwn ? nil : Self.otherTag, store, remote)
            try await putCopy("same", to: "top/b/2", of: own, store, remote)
            try remote.moves.save(own)
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
            }
            #expect(try await store.ask("curl -sS \"$at/bucket/top/b/1\"") == "old")
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            #expect(keys == ["top/a/1", "top/a/2", "top/b/1"])
            #expect(remote.moves.records.isEmpty)
            #expect(try warnings(remote).filter { $0.contains("top/b/1") }.count == (isOwn ? 1 : 0))
        }
    }

    @Test(
        "S3-12: such a copy is kept when the rename is undone, and the user is told once",
        arguments: [true, false])
    func undoneCopyOfChangedOriginal(isNoted: Bool) async throws {
        try await StrictStoreProgram.withRemote(["plain"]) { store, remote, _ in
            let own = rename("top/a", "top/b", .copying)
            // What was copied was removed because the copy was there, and something else was made there.
            try await store.put("newer", to: "top/a")
            try await putCopy("old", to: "top/b", of: own, store, remote)
            if isNoted {
                let copy = try #require(try await remote.client.listed("top/b"))
                remote.records.didCopy([(copy, copy.key, copy.tag)], in: own)
            }
            try remote.moves.save(own)
            _ = try await remote.move(RemotePath("a"), to: RemotePath("c"), kind: .file)
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            #expect(keys == ["top/b", "top/c"])
            #expect(try await store.ask("curl -sS \"$at/bucket/top/b\"") == "old")
            #expect(try warnings(remote).filter { $0.contains("'top/b' is kept") }.count == 1)
            // The next rename of the same second does not take it for its own.
            let copy = try #require(try await remote.client.listed("top/b"))
            #expect(!remote.records.hasMade(copy, own))
        }
    }

    /// What happens after an attempt that ended when all copies were there.
    enum Next: CaseIterable {
        case again, otherName, collision
    }

    @Test(
        "S3-12: a rename replaces or deletes the copies that an earlier attempt of the same process has made",
        arguments: ["plain", "ignores"], Next.allCases)
    func changedBetweenAttempts(on server: String, next: Next) async throws {
        try await StrictStoreProgram.withRemote([server]) { store, remote, _ in
            for number in 1...2 { try await store.put("first", to: "top/a/\(number)") }
            await remote.preconditions.support()
            await #expect(throws: CancellationError.self) {
                try await remote.mover.move(from: "top/a/", to: "top/b/", renaming: "top/a") {
                    throw CancellationError()
                }
            }
            #expect(remote.moves.records.map(\.stage) == [.copying])
            try await store.put("second", to: "top/a/1")
            if next == .collision {
                for key in ["top/a/3", "top/b/3"] { try await store.put("theirs", to: key) }
                await #expect(throws: RemoteConditionFailure.self) {
                    try await remote.move(RemotePath("a"), to: RemotePath("b"), kind: .directory)
                }
            } else {
                let name = next == .again ? "b" : "c"
                _ = try await remote.move(RemotePath("a"), to: RemotePath(name), kind: .directory)
                #expect(try await store.ask("curl -sS \"$at/bucket/top/\(name)/1\"") == "second")
            }
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            switch next {
            case .again: #expect(keys == ["top/b/1", "top/b/2"])
            case .otherName: #expect(keys == ["top/c/1", "top/c/2"])
            case .collision: #expect(keys == ["top/a/1", "top/a/2", "top/a/3", "top/b/3"])
            }
            #expect(remote.moves.records.isEmpty)
            #expect(try warnings(remote).filter { $0.contains("top/b/") }.isEmpty)
        }
    }

    @Test(
        "S3-12: a copy without a mark that cannot be deleted stays the rename's own",
        arguments: ["plain", "ignores"])
    func undeletableCopy(on server: String) async throws {
        try await StrictStoreProgram.withRemote([server, "keeps=top/b/"]) { store, remote, _ in
            let own = rename("top/a/", "top/b/", .copying)
            for key in ["top/a/1", "top/b/1"] { try await store.put("text", to: key) }
            let copy = try #require(try await remote.client.listed("top/b/1"))
            remote.records.didCopy([(copy, copy.key, copy.tag)], in: own)
            try remote.moves.save(own)
            await #expect(throws: (any Error).self) {
                try await remote.move(RemotePath("a"), to: RemotePath("c"), kind: .directory)
            }
            #expect(remote.moves.records == [own] && remote.records.hasMade(copy, own))
        }
    }

    @Test("S3-7: while the copies of a rename are deleted, no note tells that they are its own")
    func forgottenBeforeDeletion() async throws {
        try await StrictStoreProgram.withRemote(["plain", "slow=top/b/1"]) { store, remote, _ in
            let own = rename("top/a/", "top/b/", .copying)
            try await store.put("text", to: "top/a/1")
            try await putCopy("text", to: "top/b/1", of: own, store, remote)
            let copy = try #require(try await remote.client.listed("top/b/1"))
            remote.records.didCopy([(copy, copy.key, copy.tag)], in: own)
            try remote.moves.save(own)
            async let moved = remote.move(RemotePath("a"), to: RemotePath("c"), kind: .directory)
            #expect(try await eventually { try await store.log().contains("slow top/b/1") })
            // After a SIGKILL now, another machine's copy of the same object would be at this key.
            #expect(!remote.records.hasMade(copy, own))
            _ = try await moved
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            #expect(keys == ["top/c/1"])
        }
    }

    @Test("S3-7: the notes of copies that are left are put back", arguments: [true, false])
    func putBack(isRefused: Bool) async throws {
        let records = ObjectRecords(in: .temporary, ledger: OperationLedger())
        let own = rename("top/a/", "top/b/", .copying)
        let copies = ["top/b/1", "top/b/2"].map { S3Object(key: $0, tag: "\"1\"", size: 1, modified: nil) }
        records.didCopy(copies.map { ($0, $0.key, $0.tag) }, in: own)
        do {
            try await records.forgetting(copies.map(\.key)) {
                #expect(!copies.contains { records.hasMade($0, own) })
                if isRefused { throw CancellationError() }
                return ["top/b/2"]
            }
        } catch is CancellationError {}
        #expect(copies.map { records.hasMade($0, own) } == [isRefused, true])
    }

    @Test("S3-12: an object whose mode was set has no mark of a rename any more")
    func changedMode() async throws {
        try await StrictStoreProgram.withRemote(["plain"]) { store, remote, _ in
            let own = rename("top/a", "top/b", .copying)
            try await putCopy("text", to: "top/b", of: own, store, remote)
            var attributes = RemoteAttributes()
            attributes.permissions = 0o640
            _ = try await remote.set(attributes, of: RemotePath("b"), kind: .file)
            #expect(try await remote.client.renameMark(of: "top/b") == "")
            #expect(try await remote.client.metadata(of: "top/b")["x-amz-meta-mode"] != nil)
        }
    }

    @Test("S3-12: a copy that was noted is not looked at where the server checks that its key is free")
    func notedCopies() async throws {
        try await StrictStoreProgram.withRemote(["plain"]) { store, remote, _ in
            let own = rename("top/a/", "top/b/", .deleting)
            for number in 1...9 {
                try await store.put("text", to: "top/a/\(number)")
                try await putCopy("text", to: "top/b/\(number)", of: own, store, remote)
                let copy = try #require(try await remote.client.listed("top/b/\(number)"))
                remote.records.didCopy([(copy, copy.key, copy.tag)], in: own)
            }
            try remote.moves.save(own)
            let before = try await store.log().count
            _ = try await remote.entry(at: .root)
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            #expect(keys == (1...9).map { "top/b/\($0)" })
            #expect(try await !store.log().dropFirst(before).contains { $0.hasPrefix("HEAD top/b/") })
        }
    }

    @Test(
        "S3-12: a rename of one object lists it once where the server checks that the key of the copy is free",
        arguments: [ItemKind.file, .symbolicLink])
    func requestsOfRename(kind: ItemKind) async throws {
        try await StrictStoreProgram.withRemote(["plain"]) { store, remote, _ in
            func asked() async throws -> [String] { try await store.log().filter { !$0.contains("/.yonder-") } }
            let suffix = kind == .file ? "" : LinkNames.suffix
            try await store.put("", to: "top/a/")
            try await store.put("text", to: "top/a/old\(suffix)")
            let old = try await remote.entry(at: RemotePath("a/old"))
            await remote.preconditions.support()
            let before = try await asked().count
            let moved = try await remote.move(RemotePath("a/old"), to: RemotePath("a/new"), kind: kind)
            // Both names and the directory at once, the metadata, the copy twice, the original.
            let tag = String(decoding: old.tag, as: UTF8.self)
            #expect(
                try await asked().dropFirst(before) == [
                    "GET", "GET", "GET", "HEAD top/a/old\(suffix)", "PUT top/a/new\(suffix) *", "GET",
                    "DELETE top/a/old\(suffix) \(tag)",
                ])
            #expect(moved.tag == old.tag && moved.kind == kind)
            let there = try await remote.entry(at: RemotePath("a/new"))
            #expect(moved == there)
            #expect(remote.moves.records.isEmpty)
        }
    }

    @Test(
        "S3-12: marks are looked at shortly before something is deleted because of them",
        arguments: ["plain", "ignores"])
    func checkedBeforeDeletion(on server: String) async throws {
        try await StrictStoreProgram.withRemote([server]) { store, remote, _ in
            let own = rename("top/a/", "top/b/", .deleting)
            let width = S3Settings().width
            for number in 10..<10 + 3 * width {
                try await store.put("text", to: "top/a/\(number)")
                try await putCopy("text", to: "top/b/\(number)", of: own, store, remote)
            }
            try remote.moves.save(own)
            let before = try await store.log().count
            _ = try await remote.entry(at: .root)
            let keys = try await store.keys().filter { !$0.contains("/.yonder-") }
            #expect(keys == (10..<10 + 3 * width).map { "top/b/\($0)" })
            var (looked, most) = (0, 0)
            for line in try await store.log().dropFirst(before) {
                if line.hasPrefix("HEAD top/b/") { looked += 1 }
                most = max(most, looked)
                if line.hasPrefix("POST") || line.hasPrefix("DELETE top/a/") { looked = 0 }
            }
            #expect(most == width)
        }
    }

    @Test("S3-12: two machines that make the same rename while a third one writes in the new place lose nothing")
    func sameRenameTwice() async throws {
        try await StrictStoreProgram.withRemote(["plain", "delay=0.01"]) { store, first, scratch in
            let second = try store.remote(stateDirectory: scratch.makeDirectory("second"))
            try await withCleanUp({ await second.close() }) {
                for round in 1...5 {
                    let (from, to) = (RemotePath("a\(round)"), RemotePath("b\(round)"))
                    for number in 1...4 { try await store.put("\(number)", to: "top/a\(round)/\(number)") }
                    async let one = try? first.move(from, to: to, kind: .directory)
                    async let two = try? second.move(from, to: to, kind: .directory)
                    try await store.put("theirs", to: "top/b\(round)/3")
                    _ = await (one, two)
                    let keys = try await store.keys()
                    for number in [1, 2, 4] {
                        let places = ["top/a\(round)/\(number)", "top/b\(round)/\(number)"]
                        #expect(places.contains { keys.contains($0) }, "\(number) is lost: \(keys)")
                    }
                    #expect(try await store.ask("curl -sS \"$at/bucket/top/b\(round)/3\"") == "theirs")
                }
            }
        }
    }
}
