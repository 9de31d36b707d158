/// How much room contents take on the disk.
package enum ContentSize {
    /// How many blocks of 512 bytes a file of a size takes on most file systems: whole pages of 4 KiB.
    package static func usualBlocks(of size: Int64) -> Int64 {
        (size / 4096 + (size % 4096 == 0 ? 0 : 1)) * 8
    }

    /// Whether a file takes another number of blocks than its size fills.
    static func isUnusual(_ allocated: Int64, for size: Int64) -> Bool { allocated / 512 != usualBlocks(of: size) }
}
