import FileProvider
import FileProviderPaths
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import S3Provider

/// Many small files go to a server that is far away, or serves few at once.
@Suite(.tags(.server, .timing), .serialized) struct DrainTests {
    /// Writes files as the system does: many at once, and again what failed.
    private func drain(
        _ count: Int, to options: String...
    ) async throws -> (most: Int, requests: Int, refused: Int, keys: Int) {
        // Safe: `run` calls the closure once and returns after it has ended; nothing else sees the variable.
        nonisolated(unsafe) var result: (Int, Int, Int, Int)?
        try await StrictStoreProgram.withRemote(options) { store, remote, scratch in
            let content = try scratch.makeFile("content", Array("text".utf8))
            _ = await remote.preconditions.support()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<count {
                    if number >= S3Remote.concurrentCalls { try await group.next() }
                    group.addTask {
                        for attempt in 1... {
                            do {
                                _ = try await remote.write(
                                    ContentSource(descriptor: .open(content, .readOnly), size: 4),
                                    to: RemotePath("file \(number)"),
                                    attributes: RemoteAttributes(
                                        contentModificationDate: FileTimestamp(seconds: 1_700_000_000)),
                                    if: attempt == 1 ? .absent : .always)
                                return
                            } catch let error as FileProviderError where error.code == .serverUnreachable && attempt < 9
                            {
                                try await Task.sleep(for: .milliseconds(100))
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            result = (
                Int(try await store.ask("curl -sS \"$at/most\"")) ?? 0, try await store.log().count,
                Int(try await store.ask("curl -sS \"$at/refused\"")) ?? 0,
                try await store.keys().count { !$0.contains("/.yonder-") }
            )
        }
        let found = try #require(result)
        return (found.0, found.1, found.2, found.3)
    }

    @Test("HTTP-8: small files drain many at once to a server that takes them, each with two requests")
    func manyAtOnce() async throws {
        let (most, requests, _, keys) = try await drain(400, to: "delay=0.05")
        #expect(keys == 400)
        #expect(requests < 850, "\(requests)")
        #expect((8...S3Remote.concurrentCalls).contains(most), "\(most)")
    }

    @Test("HTTP-8: a server that refuses what is too much gets what it takes, and all of it arrives")
    func busyServer() async throws {
        let (_, requests, refused, keys) = try await drain(300, to: "delay=0.05", "busy=10")
        #expect(keys == 300)
        #expect(refused < requests / 8, "\(refused) of \(requests)")
    }
}
