import FUSE

/// What a mount lets users and files do beyond the usual.
package struct MountRights: Hashable, Sendable {
    /// Other users than the one who mounts may use it, root included. The kernel checks modes and owners for everybody.
    package var allowsOthers: Bool
    /// Device files in it can be opened. For root alone.
    package var allowsDevices: Bool
    /// Set-user-ID and set-group-ID bits and file capabilities in it count. For root alone.
    package var allowsSetID: Bool

    package init(allowsOthers: Bool = false, allowsDevices: Bool = false, allowsSetID: Bool = false) {
        self.allowsOthers = allowsOthers
        self.allowsDevices = allowsDevices
        self.allowsSetID = allowsSetID
    }

    /// Whether this user may let others use a mount: root, or everybody where /etc/fuse.conf says so.
    package static var canAllowOthers: Bool { SessionOptions.canAllowOthers }
}
