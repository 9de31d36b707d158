import FileProvider
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
}
