import CFUSEShim

/// What was agreed with the kernel when the connection began.
package struct ConnectionFeatures: Hashable, Sendable {
    /// The kernel's minor version of protocol 7, as far as libfuse shows it.
    package var protocolMinor: UInt32
    package var maxWrite: Int
    package var maxReadAhead: Int
    package var maxBackground: Int
    /// Opened files can be passed through to a backing file.
    package var passthrough: Bool
    /// The kernel collects writes and keeps size and times meanwhile.
    package var writebackCache: Bool
    package var readDirectoryPlus: Bool
    package var parallelDirectoryOperations: Bool
    package var cachesSymbolicLinks: Bool
    /// Cached contents go only when a notification says so.
    package var explicitInvalidation: Bool
    package var atomicTruncate: Bool
    package var spliceRead: Bool
    package var spliceWrite: Bool
    /// Clearing set-ID bits is the file system's business.
    package var clearsPrivileges: Bool
    /// And so the kernel need not ask for `security.capability` before each write.
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
