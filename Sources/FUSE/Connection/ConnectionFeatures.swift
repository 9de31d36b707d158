import CFUSEShim

/// The features negotiated with the kernel in FUSE_INIT.
package struct ConnectionFeatures: Hashable, Sendable {
    /// The minor version of FUSE protocol 7, as reported by libfuse.
    package var protocolMinor: UInt32
    package var maxWrite: Int
    package var maxReadAhead: Int
    package var maxBackground: Int
    /// Open files can be passed through to a backing file.
    package var passthrough: Bool
    /// The kernel uses a writeback cache and owns size and times.
    package var writebackCache: Bool
    package var readDirectoryPlus: Bool
    package var parallelDirectoryOperations: Bool
    package var cachesSymbolicLinks: Bool
    /// The kernel drops cached pages only after a notification.
    package var explicitInvalidation: Bool
    package var atomicTruncate: Bool
    package var spliceRead: Bool
    package var spliceWrite: Bool
    /// The file system clears set-ID bits (FUSE_HANDLE_KILLPRIV).
    package var clearsPrivileges: Bool
    /// The kernel need not request `security.capability` before each write (FUSE_HANDLE_KILLPRIV_V2).
    package var clearsPrivilegesWithoutAsking: Bool
    /// The kernel checks POSIX ACLs.
    package var accessControlLists: Bool

    init(_ features: fuseshim_features) {
        protocolMinor = features.protocol_minor
        maxWrite = Int(features.max_write)
        maxReadAhead = Int(features.max_readahead)
        maxBackground = Int(features.max_background)
        passthrough = features.passthrough
        writebackCache = features.writeback_cache
        readDirectoryPlus = features.readdirplus
        parallelDirectoryOperations = features.parallel_directory_operations
        cachesSymbolicLinks = features.cache_symlinks
        explicitInvalidation = features.explicit_invalidation
        atomicTruncate = features.atomic_truncate
        spliceRead = features.splice_read
        spliceWrite = features.splice_write
        clearsPrivileges = features.kill_privileges
        clearsPrivilegesWithoutAsking = features.kill_privileges_v2
        accessControlLists = features.posix_acl
    }
}
