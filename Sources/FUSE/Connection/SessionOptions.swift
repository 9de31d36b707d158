import CFUSEShim

/// Mount options and requested kernel features. A feature that the kernel or the user's rights do not allow is left out;
/// see ``Session/negotiated``.
package struct SessionOptions: Hashable, Sendable {
    /// The source field in /proc/mounts; any text.
    package var source: String
    /// The type in /proc/mounts is `fuse.` followed by this.
    package var subtype: String
    /// Other users may access the mount, subject to permissions. Requires ``canAllowOthers``.
    package var allowsOthers = false
    /// Device files can be opened. For root only.
    package var allowsDevices = false
    /// Set-user-ID and set-group-ID bits and file capabilities are honoured. For root only.
    package var allowsSetID = false
    /// Open files can use passthrough. Needs CAP_SYS_ADMIN and Linux 6.9.
    package var passthrough = true
    /// The kernel reads ahead with several requests at once. The kernel does not report the interruption of such a
    /// request (``Reply/onInterrupt(_:)``): a reader that catches its signal continues to wait.
    package var asynchronousRead = true
    /// The file system applies the umask, not the kernel.
    package var keepsUmask = false
    /// The kernel, which always checks permissions by mode, owner and group, also checks POSIX ACLs. It requests them as
    /// extended attributes; the file system keeps mode and ACL consistent.
    package var accessControlLists = false
    package var threads = 8

    /// Whether this user may use ``allowsOthers``: root, or any user if /etc/fuse.conf has `user_allow_other`.
    package static var canAllowOthers: Bool { fuseshim_may_allow_other() }

    package init(source: String, subtype: String) {
        self.source = source
        self.subtype = subtype
    }
}
