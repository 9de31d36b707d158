import CFUSEShim

/// What `statfs` shows of a file system. Counts of blocks are in units of `fragmentSize`.
package struct FileSystemUsage: Hashable, Sendable {
    package var blocks: UInt64
    package var freeBlocks: UInt64
    /// The number of blocks available to unprivileged users.
    package var availableBlocks: UInt64
    package var files: UInt64
    package var freeFiles: UInt64
    package var blockSize: UInt32
    package var fragmentSize: UInt32
    package var nameLength: UInt32

    package init(
        blocks: UInt64, freeBlocks: UInt64, availableBlocks: UInt64, files: UInt64, freeFiles: UInt64,
        blockSize: UInt32 = 4096, fragmentSize: UInt32 = 4096, nameLength: UInt32 = 255
    ) {
        self.blocks = blocks
        self.freeBlocks = freeBlocks
        self.availableBlocks = availableBlocks
        self.files = files
        self.freeFiles = freeFiles
        self.blockSize = blockSize
        self.fragmentSize = fragmentSize
        self.nameLength = nameLength
    }

    var shim: fuseshim_statistics {
        fuseshim_statistics(
            blocks: blocks, free_blocks: freeBlocks, available_blocks: availableBlocks, files: files,
            free_files: freeFiles, block_size: blockSize, fragment_size: fragmentSize, name_length: nameLength)
    }
}
