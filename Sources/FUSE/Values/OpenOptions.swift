import CFUSEShim

/// What the answer to `open` tells the kernel of its caches.
package struct OpenOptions: OptionSet, Hashable, Sendable {
    package var rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ flag: Int) { rawValue = UInt32(flag) }

    /// Every read and write comes to the file system.
    package static var directIO: OpenOptions { OpenOptions(FUSESHIM_OPEN_DIRECT_IO) }
    /// What is in the page cache is still good. For directories: what is in their cache.
    package static var keepCache: OpenOptions { OpenOptions(FUSESHIM_OPEN_KEEP_CACHE) }
    package static var nonSeekable: OpenOptions { OpenOptions(FUSESHIM_OPEN_NONSEEKABLE) }
    /// The kernel may keep the directory's listing.
    package static var cacheDirectory: OpenOptions { OpenOptions(FUSESHIM_OPEN_CACHE_DIRECTORY) }
    /// No `flush` is wanted when a descriptor is closed.
    package static var noFlush: OpenOptions { OpenOptions(FUSESHIM_OPEN_NO_FLUSH) }
    /// Direct writes need not wait for each other.
    package static var parallelDirectWrites: OpenOptions {
        OpenOptions(FUSESHIM_OPEN_PARALLEL_DIRECT_WRITES)
    }
}
