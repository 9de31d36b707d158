import CFUSEShim

/// The cache flags in the reply to OPEN.
package struct OpenOptions: OptionSet, Hashable, Sendable {
    package var rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ flag: Int) { rawValue = UInt32(flag) }

    /// Reads and writes bypass the page cache.
    package static var directIO: OpenOptions { OpenOptions(FUSESHIM_OPEN_DIRECT_IO) }
    /// Cached pages stay valid. For a directory: its cached listing stays valid.
    package static var keepCache: OpenOptions { OpenOptions(FUSESHIM_OPEN_KEEP_CACHE) }
    /// The kernel may cache the directory's listing.
    package static var cacheDirectory: OpenOptions { OpenOptions(FUSESHIM_OPEN_CACHE_DIRECTORY) }
    /// The kernel sends no FLUSH when a descriptor is closed.
    package static var noFlush: OpenOptions { OpenOptions(FUSESHIM_OPEN_NO_FLUSH) }
}
