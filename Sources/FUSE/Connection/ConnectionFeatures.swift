import CFUSEShim

/// The features negotiated with the kernel in FUSE_INIT.
package struct ConnectionFeatures: Codable, Hashable, Sendable {
    package var maxWrite: Int
    /// Open files can be passed through to a backing file.
    package var passthrough: Bool
    package var readDirectoryPlus: Bool
    package var parallelDirectoryOperations: Bool
    /// The kernel drops cached pages only after a notification.
    package var explicitInvalidation: Bool
    package var atomicTruncate: Bool
    package var spliceRead: Bool
    package var spliceWrite: Bool
    /// The kernel need not request `security.capability` before each write (FUSE_HANDLE_KILLPRIV_V2).
    package var clearsPrivilegesWithoutAsking: Bool
    /// The kernel checks POSIX ACLs.
    package var accessControlLists: Bool

    init(_ features: fuseshim_features) {
        maxWrite = Int(features.max_write)
        passthrough = features.passthrough
        readDirectoryPlus = features.readdirplus
        parallelDirectoryOperations = features.parallel_directory_operations
        explicitInvalidation = features.explicit_invalidation
        atomicTruncate = features.atomic_truncate
        spliceRead = features.splice_read
        spliceWrite = features.splice_write
        clearsPrivilegesWithoutAsking = features.kill_privileges_v2
        accessControlLists = features.posix_acl
    }
}
