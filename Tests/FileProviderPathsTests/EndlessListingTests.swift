import FileProvider
import FileProviderPaths
import FileProviderTesting
import Synchronization
import Testing

/// Listings that a remote never ends.
@Suite struct EndlessListingTests {
    private static let cycles = [["A"], ["A", "B"], ["A", "B", "C", "D", "E"]]

    @Test("NAME-8: a listing whose tokens go round in a cycle ends with an error", arguments: cycles)
    func listingEnds(cycle: [String]) async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(RemotePath(["d"]), kind: .directory) }
            let directory = try await session.find("d").itemIdentifier
            remote.cycle.withLock { $0 = cycle }
            _ = remote.takeCalls()
            let error = await #expect(throws: FileProviderError.self) { _ = try await session.list(directory) }
            #expect(error?.code == .malformedResponse)
            #expect(remote.takeCalls().count { $0.hasPrefix("entries") } < 20)
        }
    }

    @Test("NAME-8: a directory whose listing goes round in a cycle is not searched for ever before it is deleted")
    func deletingEnds() async throws {
        try await MemoryPathRemote.run(.init(listsTrees: true)) { remote, session async throws in
            remote.change { $0.make(RemotePath(["d"]), kind: .directory) }
            let directory = try await session.find("d")
            remote.cycle.withLock { $0 = ["A", "B"] }
            _ = remote.takeCalls()
            _ = try? await session.provider.deleteItem(
                identifier: directory.itemIdentifier, baseVersion: directory.itemVersion, options: [],
                request: FileProviderRequest(reason: .synchronization))
            _ = try? await session.list(directory.itemIdentifier)
            #expect(remote.takeCalls().count < 100)
        }
    }
}

/// A remote whose listing has ever new tokens, and entries in each part.
private struct EndlessRemote: PathRemote {
    private let part = Array(
        repeating: RemoteEntry(name: "file", kind: .file, tag: [1], isTagStrong: true, size: 0), count: 100_000)

    var traits: RemoteTraits { RemoteTraits() }

    func entry(at path: RemotePath) async throws -> RemoteEntry { throw FileProviderError(.noSuchItem) }

    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        let number = token.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
        return RemoteListing(entries: part, next: Array(String(number + 1).utf8))
    }

    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry { throw FileProviderError(.noSuchItem) }
}

extension EndlessListingTests {
    @Test("NAME-8: a listing of ever new tokens and entries is not visited for ever") func visitingEnds() async throws {
        let visited = Mutex(0)
        let error = await #expect(throws: FileProviderError.self) {
            try await EndlessRemote().visitListing(of: .root) { part in
                visited.withLock { $0 += part.entries.count }
                return true
            }
        }
        let count = visited.withLock { $0 }
        #expect(error?.code == .malformedResponse && count == 10_000_000)
    }
}

@Suite struct CycleCheckTests {
    @Test("NAME-8: a cycle of any length is noticed, wherever it begins", arguments: 1...12, 0...5)
    func noticed(length: Int, before: Int) {
        var check = CycleCheck(from: 0)
        var steps = 0
        var token = 0
        while steps < 1000 {
            token = token < before ? token + 1 : before + (token - before + 1) % length
            steps += 1
            if check.closes(with: token) { break }
        }
        #expect(steps <= 3 * (length + before) + 3)
    }

    @Test("NAME-8: a listing of ever new tokens without entries ends with an error, one with entries does not")
    func emptyParts() {
        var (check, parts) = (CycleCheck<Int>(), 0)
        let error = #expect(throws: FileProviderError.self) {
            while parts < 100_000 {
                parts += 1
                try check.check(parts, isEmpty: parts > 1500 || parts % 100 != 0, of: "it")
            }
        }
        #expect(error?.code == .malformedResponse && (2000..<3000).contains(parts))
    }

    @Test("NAME-8: a sequence that never comes back is no cycle") func longSequence() {
        var check = CycleCheck<Int>()
        #expect((1...100_000).allSatisfy { !check.closes(with: $0) })
    }
}
