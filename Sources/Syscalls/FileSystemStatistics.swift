import Glibc
import SystemPackage

/// The space of a file system, as in `statvfs(2)`.
package struct FileSystemStatistics: Hashable, Sendable {
    package var blockSize: UInt64
    package var blocks: UInt64
    package var freeBlocks: UInt64
    package var availableBlocks: UInt64
    package var files: UInt64
    package var freeFiles: UInt64
    package var isReadOnly: Bool

    /// Of the file system that holds a path. (statvfs)
    package init(of path: FilePath) throws(Errno) {
        var statistics = statvfs()
        guard statvfs(path.cPath, &statistics) == 0 else { throw Errno.current }
        blockSize = UInt64(statistics.f_frsize)
        blocks = UInt64(statistics.f_blocks)
        freeBlocks = UInt64(statistics.f_bfree)
        availableBlocks = UInt64(statistics.f_bavail)
        files = UInt64(statistics.f_files)
        freeFiles = UInt64(statistics.f_ffree)
        isReadOnly = statistics.f_flag & UInt(ST_RDONLY) != 0
    }

    /// How many bytes are in some of its blocks.
    package func bytes(in blocks: UInt64) -> Int64 {
        let bytes = Int64(clamping: blocks).multipliedReportingOverflow(by: Int64(clamping: blockSize))
        return bytes.overflow ? .max : bytes.partialValue
    }
}
