/// How much room contents take on the disk.
package enum ContentSize {
    /// How many blocks of 512 bytes a file of a size takes on most file systems: whole pages of 4 KiB.
    package static func usualBlocks(of size: Int64) -> Int64 {
        (size / 4096 + (size % 4096 == 0 ? 0 : 1)) * 8
    }
}
