import FileProvider
import FileProviderPaths
import FileProviderTesting
import HTTPTransport
import Synchronization
import TestSupport
import Testing

@testable import S3Provider

@Suite(.timeLimit(.minutes(1))) struct ClaimedPlacesTests {
    private final class Order: Sendable {
        private let numbers = Mutex<[Int]>([])

        var made: [Int] { numbers.withLock { $0 } }

        func add(_ number: Int) { numbers.withLock { $0.append(number) } }
    }

    /// Holds a place until it is told to let go.
    private func holding(
        _ place: PathExtent, of ledger: OperationLedger, _ body: () async throws -> Void
    ) async throws {
        let (release, end) = AsyncStream.makeStream(of: Void.self)
        let held = ledger.claimCount + 1
        let holder = Task {
            try await ledger.perform(claiming: [place]) { _ in for await _ in release {} }
        }
        try await waitFor(held, in: ledger)
        try await withCleanUp({ end.finish() }) { try await body() }
        try await holder.value
    }

    private func waitFor(_ count: Int, in ledger: OperationLedger) async throws {
        while ledger.claimCount < count { try await Task.sleep(for: .milliseconds(1)) }
    }

    @Test("S3-14: changes of other places are made at once, those of the same in the order they came")
    func orderOfChanges() async throws {
        let ledger = OperationLedger()
        let order = Order()
        var waiting: [Task<Void, any Error>] = []
        try await holding(.below("a/"), of: ledger) {
            for place in [PathExtent.exactly("a"), .exactly("ab"), .below("b/"), .exactly("b/x")] {
                try await ledger.perform(claiming: [place]) { _ in }
            }
            for (number, place) in [PathExtent.exactly("a/x"), .below("a/b/"), .below(""), .exactly("a/b/")]
                .enumerated()
            {
                waiting.append(Task { try await ledger.perform(claiming: [place]) { _ in order.add(number) } })
                try await waitFor(number + 2, in: ledger)
            }
            // It waits for what waits for it: otherwise who is about much would never come to his turn.
            let late = Task { try await ledger.perform(claiming: [.exactly("other")]) { _ in order.add(4) } }
            waiting.append(late)
            try await waitFor(6, in: ledger)
            #expect(order.made == [])
        }
        for task in waiting { try await task.value }
        let made = order.made
        #expect(Set(made.prefix(2)) == [0, 1] && made.firstIndex(of: 2) == 2 && Set(made.suffix(2)) == [3, 4])
        #expect(ledger.claimCount == 0)
    }

    @Test("S3-14: no operation waits forever, or after its caller has cancelled it")
    func patienceAndCancellation() async throws {
        let ledger = OperationLedger(patience: .milliseconds(100))
        try await holding(.exactly("a"), of: ledger) {
            await #expect(throws: OperationLedger.Busy.self) {
                try await ledger.perform(claiming: [.below("")]) { _ in }
            }
            let cancelled = Task { try await ledger.perform(claiming: [.exactly("a")]) { _ in } }
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            // Cancelled waiters block no other.
            try await ledger.perform(claiming: [.exactly("b")]) { _ in }
        }
        try await ledger.perform(claiming: [.exactly("a")]) { _ in }
    }

    @Test(
        "S3-14: what is changed in a directory just before it is renamed comes along; who comes later is told that it has gone"
    )
    func changesWhileADirectoryIsRenamed() async throws {
        try await withBucket { bucket, remote in
            for name in ["1", "2", "3", "4"] { try await bucket.put(bucket.prefix + "a/" + name, "old") }
            try await bucket.put(bucket.prefix + "elsewhere", "e")
            let entries = try await remote.entries(in: RemotePath(["a"]), from: nil, limit: 10).entries
            let tag = try #require(entries.first?.tag)
            func changes(_ suffix: String) -> [@Sendable () async throws -> Void] {
                [
                    { try await remote.delete(RemotePath(["a", "1"]), kind: .file, if: .unchanged(tag: tag)) },
                    {
                        try await withContent(Array("new".utf8)) {
                            _ = try await remote.write(
                                $0, to: RemotePath(["a", "2"]), attributes: RemoteAttributes(), if: .unchanged(tag: tag)
                            )
                        }
                    },
                    {
                        _ = try await remote.move(
                            RemotePath(["a", "3"]), to: RemotePath(["out" + suffix]), kind: .file)
                    },
                    {
                        _ = try await remote.makeDirectory(
                            at: RemotePath(["a", "made" + suffix]), attributes: RemoteAttributes())
                    },
                    { _ = try await remote.set(RemoteAttributes(), of: RemotePath(["a", "4"]), kind: .file) },
                ]
            }
            var (before, after): ([Task<Void, any Error>], [Task<Void, any Error>]) = ([], [])
            var renaming: Task<RemoteEntry, any Error>?
            var coming: Task<RemoteEntry, any Error>?
            try await holding(.below(bucket.prefix + "a/"), of: remote.client.ledger) {
                for change in changes("") { before.append(Task { try await change() }) }
                try await waitFor(6, in: remote.client.ledger)
                renaming = Task { try await remote.move(RemotePath(["a"]), to: RemotePath(["b"]), kind: .directory) }
                try await waitFor(7, in: remote.client.ledger)
                for change in changes("-late") { after.append(Task { try await change() }) }
                coming = Task {
                    try await remote.move(RemotePath(["elsewhere"]), to: RemotePath(["a", "come"]), kind: .file)
                }
                try await waitFor(13, in: remote.client.ledger)
            }
            for task in before { try await task.value }
            _ = try await renaming?.value
            for task in after { #expect(await failure { try await task.value }?.code == .noSuchItem) }
            // The file itself is where it was.
            let busy = await failure { _ = try await coming?.value }
            #expect(busy?.code == .providerDomainTemporarilyUnavailable)
            #expect(busy.map { OperationLedger.isOutcomeUnknown(after: $0) } == false)
            let keys = try await bucket.keys().map { String($0.dropFirst(bucket.prefix.count)) }
            #expect(keys == ["b/2", "b/4", "b/made/", "elsewhere", "out"])
            #expect(try await bucket.get(bucket.prefix + "b/2").text == "new")
        }
    }
}
