import FileProvider
import FileProviderPaths
import FileProviderTesting
import Synchronization
import TestSupport
import Testing

@testable import RcloneProvider

@Suite struct RcloneLookupTests {
    /// Answers when it is told to, and counts.
    private final class Reader: RcloneDirectoryReader {
        let entries: Mutex<[RemoteEntry]>
        let calls = Mutex<(lookups: [String], listings: Int)>(([], 0))
        let gate = Gate()
        let takes = Mutex((lookup: Duration.zero, listing: Duration.zero))

        init(_ entries: [RemoteEntry]) {
            self.entries = Mutex(entries)
        }

        func lookUpFile(_ path: RemotePath) async throws -> RemoteEntry? {
            calls.withLock { $0.lookups.append(path.name ?? "") }
            try await gate.pass()
            try await Task.sleep(for: takes.withLock { $0.lookup })
            return entries.withLock { $0.first { $0.name == path.name } }
        }

        func list(_ directory: RemotePath) async throws -> [RemoteEntry] {
            calls.withLock { $0.listings += 1 }
            try await Task.sleep(for: takes.withLock { $0.listing })
            return entries.withLock { $0 }
        }
    }

    private static func file(_ name: String, size: Int64 = 1) -> RemoteEntry {
        RemoteEntry(name: name, kind: .file, tag: Array(name.utf8), isTagStrong: false, size: size)
    }

    private static func path(_ name: String) -> RemotePath { RemotePath(["d", name]) }

    /// Looks names up while the first lookup waits, and lets it go on.
    private static func answers(
        _ reader: Reader, _ names: [String], size: Int = 10, meanwhile: () -> Void = {}
    ) async throws -> [String: RemoteEntry?] {
        let lookups = RcloneLookups()
        await lookups.wasListed(RemotePath(["d"]), count: size)
        return try await withThrowingTaskGroup(of: (String, RemoteEntry?).self) { group in
            group.addTask { ("first", try await lookups.file(at: path("first"), from: reader)) }
            #expect(await eventually { reader.calls.withLock { $0.lookups.count } == 1 })
            for name in names {
                group.addTask { (name, try await lookups.file(at: path(name), from: reader)) }
            }
            if size <= 1000 {
                #expect(await eventually { await lookups.waitingCount == names.count })
            } else {
                #expect(await eventually { reader.calls.withLock { $0.lookups.count } == 1 + names.count })
            }
            meanwhile()
            reader.gate.open()
            var answers: [String: RemoteEntry?] = [:]
            for try await (name, entry) in group { answers[name] = .some(entry) }
            return answers
        }
    }

    @Test("RCLONE-9: files of one directory that are looked up at once share one listing, which begins after the calls")
    func oneListingForMany() async throws {
        let names = (0..<20).map { "\($0)" }
        let reader = Reader((["first"] + names).map { Self.file($0) })
        let answers = try await Self.answers(reader, names + ["missing"]) {
            reader.entries.withLock { $0[1].size = 99 }
        }
        #expect(reader.calls.withLock { $0 } == (["first", "missing"], 1))
        #expect(answers["0"]??.size == 99 && answers["19"]??.name == "19" && answers["missing"] == .some(nil))
    }

    @Test("RCLONE-9: in a large directory, files are looked up singly and at once")
    func largeDirectories() async throws {
        let names = ["a", "b", "c"]
        let reader = Reader((["first"] + names).map { Self.file($0) })
        let answers = try await Self.answers(reader, names, size: 100_000)
        #expect(reader.calls.withLock { $0.listings } == 0 && answers.count == 4)
    }

    @Test("RCLONE-9: where a listing takes longer, files are looked up singly")
    func slowListings() async throws {
        let names = (0..<4).map { "\($0)" }
        let reader = Reader((["first"] + names).map { Self.file($0) })
        reader.takes.withLock { $0 = (.milliseconds(50), .milliseconds(500)) }
        let lookups = RcloneLookups()
        await lookups.wasListed(RemotePath(["d"]), count: 5)
        reader.gate.open()
        for _ in 0..<2 {
            await withTaskGroup { group in
                for name in ["first"] + names {
                    group.addTask { _ = try? await lookups.file(at: Self.path(name), from: reader) }
                }
            }
        }
        #expect(reader.calls.withLock { $0.listings } == 1 && reader.calls.withLock { $0.lookups.count } == 6)
    }

    @Test("RCLONE-9: a directory is no file")
    func directoriesAreNoFiles() async throws {
        let directory = RemoteEntry(name: "sub", kind: .directory, tag: [], isTagStrong: false)
        let reader = Reader([Self.file("first"), directory, Self.file("f")])
        let answers = try await Self.answers(reader, ["sub", "f"])
        #expect(answers["sub"] == .some(nil) && answers["f"]??.name == "f")
    }

    @Test("RCLONE-9: who is cancelled leaves the others their answer")
    func cancellation() async throws {
        let reader = Reader([Self.file("first"), Self.file("a"), Self.file("b")])
        let lookups = RcloneLookups()
        await lookups.wasListed(RemotePath(["d"]), count: 3)
        let first = Task { try await lookups.file(at: Self.path("first"), from: reader) }
        #expect(await eventually { reader.calls.withLock { $0.lookups.count } == 1 })
        let cancelled = Task { try await lookups.file(at: Self.path("a"), from: reader) }
        let other = Task { try await lookups.file(at: Self.path("b"), from: reader) }
        #expect(await eventually { await lookups.waitingCount == 2 })
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        reader.gate.open()
        #expect(try await other.value?.name == "b")
        _ = try await first.value
        #expect(await eventually { await lookups.waitingCount == 0 })
    }
}
