import FUSE

/// What a mount allows beyond the default.
package struct MountRights: Hashable, Sendable {
    /// Other users, including root, may access it, subject to modes and owners (`allow_other`).
    package var allowsOthers: Bool
    /// Device files in it can be opened. For root only.
    package var allowsDevices: Bool
    /// Set-user-ID and set-group-ID bits and file capabilities in it are honoured. For root only.
    package var allowsSetID: Bool

    package init(allowsOthers: Bool = false, allowsDevices: Bool = false, allowsSetID: Bool = false) {
        self.allowsOthers = allowsOthers
        self.allowsDevices = allowsDevices
        self.allowsSetID = allowsSetID
    }

    /// Whether this user may set ``allowsOthers``: root, or any user if /etc/fuse.conf has `user_allow_other`.
    package static var canAllowOthers: Bool { SessionOptions.canAllowOthers }
}
