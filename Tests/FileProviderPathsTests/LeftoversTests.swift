import FileProvider
import Synchronization
import TestSupport
import Testing

@testable import FileProviderPaths

@Suite struct LeftoversTests {
    private func entry(_ tag: UInt8, seconds: Int64 = 1_000_000_000) -> RemoteEntry {
        RemoteEntry(
            name: "x", kind: .file, tag: [tag], isTagStrong: false, size: 1,
            attributes: RemoteAttributes(contentModificationDate: FileTimestamp(seconds: seconds)))
    }

    @Test("PATH-6: a hidden name is removed when it was seen unchanged for a while, whatever the clocks say")
    func unchangedForAWhile() {
        let patient = Leftovers(age: 3600, patience: .seconds(600))
        #expect(!patient.contain(entry(1), at: RemotePath(["x"])) && !patient.contain(entry(1), at: RemotePath(["x"])))
        let quick = Leftovers(age: 3600, patience: .nanoseconds(1))
        // One that changes is being sent.
        for tag in 1...3 { #expect(!quick.contain(entry(UInt8(tag)), at: RemotePath(["x"]))) }
        #expect(quick.contain(entry(3), at: RemotePath(["x"])) && !quick.contain(entry(3), at: RemotePath(["y"])))
        #expect(!quick.contain(entry(3, seconds: 32_000_000_000), at: RemotePath(["x"])))
    }

    @Test("PATH-6: of more hidden names than are remembered, some are removed by each listing until none is left")
    func moreThanAreRemembered() {
        let leftovers = Leftovers(age: 3600, patience: .nanoseconds(1))
        var names = (0..<2500).map { RemotePath(["\($0)"]) }
        var removed: [Int] = []
        for _ in 0..<6 {
            let count = names.count
            names.removeAll { leftovers.contain(entry(1), at: $0) }
            removed.append(count - names.count)
        }
        #expect(names.isEmpty && removed.allSatisfy { $0 <= 1000 }, "\(removed)")
    }

    /// Ends no removal before it is allowed to.
    private final class HeldRemote: HidingRemote {
        let begun = Mutex<[RemotePath]>([])
        let isReleased = Mutex(false)
        let traits = RemoteTraits()

        func entry(at path: RemotePath) async throws -> RemoteEntry { throw FileProviderError(.noSuchItem) }

        func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
            RemoteListing(entries: [])
        }

        func read(
            _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
        ) async throws -> RemoteEntry { throw FileProviderError(.noSuchItem) }

        func isRemoval(_ name: String) -> Bool { true }

        func finishRemoval(at path: RemotePath) async throws {
            begun.withLock { $0.append(path) }
            while !isReleased.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(20)) }
        }
    }

    @Test("PATH-6: a removal is ended once, and not more than a thousand at a time")
    func endedRemovals() async throws {
        let leftovers = Leftovers(age: 3600, patience: .seconds(600))
        let remote = HeldRemote()
        for _ in 0..<2 {
            for number in 0..<1500 { leftovers.finishRemoval(at: RemotePath(["\(number)"]), of: remote) }
        }
        #expect(await eventually { remote.begun.withLock { $0.count } == 1000 })
        #expect(remote.begun.withLock { Set($0).count } == 1000)
        remote.isReleased.withLock { $0 = true }
        // A later listing has the others, and what failed.
        #expect(
            await eventually {
                for number in 1000..<1500 { leftovers.finishRemoval(at: RemotePath(["\(number)"]), of: remote) }
                return remote.begun.withLock { Set($0).count } == 1500
            })
    }
}
