import FileProvider
import FileProviderTesting
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Extended attributes for which the file system of the folder has no room.
extension FolderSafetyTests {
    @Test("WRITE-12: an attribute that finds no inodes on the source is refused, and stored when there is room")
    func attributeOnAFullDisk() async throws {
        // A tmpfs counts attributes against its inodes, one for each KiB, from Linux 6.6 on.
        try await onTemporaryFileSystem("size=10m,nr_inodes=120") { remote, session in
            var item = try await session.create(ProviderSession.template("file"), content: [1]).item
            item.extendedAttributes = ["a": [1]]
            let small = try await session.modify(item, .extendedAttributes)
            guard small.stillPending.isEmpty else { return }
            let fillers = (0..<80).map { remote["filler\($0)"] }
            for path in fillers { try Data().write(to: URL(fileURLWithPath: path)) }
            var changed = small.item
            changed.extendedAttributes = ["a": [UInt8](repeating: 7, count: 60_000)]
            let wanted = changed
            let refusal = await failureCode { _ = try await session.modify(wanted, .extendedAttributes) }
            #expect(refusal == .insufficientQuota)
            for path in fillers { try FileManager.default.removeItem(atPath: path) }
            let stored = try await session.modify(wanted, .extendedAttributes)
            #expect(stored.stillPending.isEmpty)
            #expect(stored.item.extendedAttributes?["a"]?.count == 60_000)
        }
    }

    @Test("WRITE-12: a source is full without blocks, or without inodes where these are counted")
    func fullDisks() throws {
        var statistics = try FileSystemStatistics(of: "/")
        (statistics.blockSize, statistics.availableBlocks) = (4096, 1 << 20)
        (statistics.files, statistics.freeFiles) = (1 << 20, 1 << 19)
        #expect(!FolderAttributes.isFull(statistics))
        statistics.freeFiles = 20
        #expect(FolderAttributes.isFull(statistics))
        // btrfs counts none.
        (statistics.files, statistics.freeFiles) = (0, 0)
        #expect(!FolderAttributes.isFull(statistics))
        statistics.availableBlocks = 40
        #expect(FolderAttributes.isFull(statistics))
    }
}
