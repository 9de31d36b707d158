import Control
import Testing

@Suite struct LocalUsageTests {
    private func file(_ path: String, inode: Int64, local: Int64, size: Int64) -> ItemInformation {
        ItemInformation(
            path: path, inode: inode, identifier: nil, kind: "file", size: size, modified: "", content: "dataless",
            localBytes: local, sync: "synced", pendingFields: [], policy: "inherited", effectivePolicy: "lazy",
            contentVersion: nil, metadataVersion: nil, isTrashed: false, trashParent: nil, error: nil)
    }

    @Test("CMD-13: sizes that exceed 64 bits together are shown as the largest number") func largeSizes() {
        var usage = LocalUsage(below: "/m", depth: 1, showsFiles: true)
        usage.add([
            file("/m/a", inode: 1, local: 1 << 62, size: 1 << 62),
            file("/m/b", inode: 2, local: 1 << 62, size: 1 << 62),
        ])
        #expect(usage.entries.map(\.path) == ["/m", "/m/a", "/m/b"])
        #expect(usage.entries.map(\.size) == [Int64.max, 1 << 62, 1 << 62])
        #expect(usage.entries.first?.local == Int64.max)
        let total = LocalUsage.total(of: usage.entries)
        #expect(total.local == .max && total.size == .max)
    }

    @Test("NAME-2: names that differ only in Unicode normalization have entries of their own") func normalization() {
        let (composed, decomposed) = ("/m/caf\u{E9}", "/m/cafe\u{301}")
        var usage = LocalUsage(below: "/m", depth: 1, showsFiles: true)
        usage.add([
            file(composed, inode: 1, local: 3, size: 30), file(decomposed, inode: 2, local: 2, size: 20),
            file("/m/\u{301}", inode: 3, local: 1, size: 10),
        ])
        #expect(
            usage.entries.map { Array($0.path.utf8) }
                == ["/m", composed, decomposed, "/m/\u{301}"].map { Array($0.utf8) })
        #expect(usage.entries.map(\.local) == [6, 3, 2, 1] && usage.entries.map(\.size) == [60, 30, 20, 10])
    }

    @Test(
        "TOP-1: parts of the largest sizes have a percentage, too",
        arguments: [
            (0, 0, 100), (0, 3, 0), (29, 100, 29), (2, 3, 66), (3, 3, 100), (4, 3, 100), (-1, 3, 0),
            (1 << 61, 1 << 62, 50), (Int64.max - 1, Int64.max, 99), (Int64.max, Int64.max, 100), (Int64.max, 1, 100),
        ] as [(Int64, Int64, Int64)]) func percentages(done: Int64, total: Int64, percent: Int64)
    {
        #expect(ByteText.percent(done, of: total) == percent)
    }
}
