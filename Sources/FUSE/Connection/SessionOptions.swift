import CFUSEShim

/// How a session mounts, and what it asks of the kernel. What the kernel or the user's rights do not allow is left out;
/// ``Session/negotiated`` tells what is had.
package struct SessionOptions: Hashable, Sendable {
    /// The first field in /proc/mounts, any text.
    package var source: String
    /// The type there is `fuse.` and this.
    package var subtype: String
    package var isReadOnly = false
    /// Other users may use the mount, as far as its permissions let them. Only where ``canAllowOthers``.
    package var allowsOthers = false
    /// Device files can be opened. For root alone.
    package var allowsDevices = false
    /// Set-user-ID and set-group-ID bits and file capabilities count. For root alone.
    package var allowsSetID = false
    /// The kernel checks permissions by mode, owner and group.
    package var defaultPermissions = true
    /// Opened files can be passed through to backing files. Needs CAP_SYS_ADMIN and Linux 6.9.
    package var passthrough = true
    /// The kernel collects writes. Only where there is no passthrough: they exclude each other.
    package var writebackCache = false
    /// The kernel reads ahead with several requests at once. Nobody waits for these as such, so nobody's interruption
    /// is told (``Reply/onInterrupt(_:)``): a reader that is killed just goes, one that catches its signal waits on.
    package var asynchronousRead = true
    /// Requests come through a pipe, so that what is written can move on without passing through memory. It costs every
    /// request a system call more.
    package var spliceRead = true
    /// The umask is applied by the file system, not by the kernel.
    package var keepsUmask = false
    /// The kernel checks permissions by POSIX ACLs as well, and asks for them as extended attributes. It checks by mode,
    /// owner and group then in any case, and the file system keeps mode and ACL in step.
    package var accessControlLists = false
    package var maxWrite = 1 << 20
    /// How many requests that nobody waits for (reading ahead) may be unanswered. More than the kernel's 12, because a
    /// parked one counts too.
    package var maxBackground = 64
    /// How many threads answer the kernel.
    package var threads = 8

    /// Whether this user may let others use a mount: root, or everybody where /etc/fuse.conf has `user_allow_other`.
    package static var canAllowOthers: Bool { fuseshim_may_allow_other() }

    package init(source: String, subtype: String) {
        self.source = source
        self.subtype = subtype
    }
}
