/// The arguments of `yonder mount`: a source and a directory, or the name of a known domain. A nil option keeps its
/// value.
package struct MountArguments: Codable, Hashable, Sendable {
    /// Nil for a known domain.
    package var source: String?
    /// The mount point. For a known domain that is named by a path: the path.
    package var directory: String?
    /// The same, where the last component is a symbolic link that ``directory`` follows.
    package var link: String?
    /// The domain's name; nil for one derived from the directory.
    package var name: String?
    package var cacheLimit: Given<Int64>?
    package var pollSeconds: Given<Double>?
    /// Whether every change fails with EROFS.
    package var isReadOnly: Bool?
    /// The time in seconds after which unused content is evicted.
    package var cacheSeconds: Given<Double>?
    /// Whether `fsync` waits for the upload.
    package var waitsForRemote: Bool?
    /// Name patterns that are excluded from sync.
    package var ignoredNames: [String]?
    package var allowsOthers: Bool?
    package var allowsDevices: Bool?
    /// Whether set-user-ID and set-group-ID bits and file capabilities in the mount are honoured.
    package var allowsSetID: Bool?
    /// The owner of items that have none of their own.
    package var user: Given<UInt32>?
    /// Their group.
    package var group: Given<UInt32>?
    /// The permissions that items without permissions of their own do not get.
    package var umask: Given<UInt16>?
    /// The most content bytes a second to the remote.
    package var upRate: Given<Int64>?
    /// The most content bytes a second from the remote.
    package var downRate: Given<Int64>?
    /// Whether the domain is paused while the network connection is metered.
    package var pausesWhileMetered: Bool?
    /// Whether the directory may have files, which the caller moves into the mount.
    package var hidesFiles: Bool?
    /// The credentials for the remote. Never logged.
    package var credentials: GivenCredentials?
    /// The options of the remote, by name, without secrets. An empty value removes the stored one.
    package var remote: [String: String]?

    package init(source: String?, directory: String?, name: String?) {
        self.source = source
        self.directory = directory
        self.name = name
    }
}

/// The argument of an option: a value, or `none`, which resets the option.
package enum Given<Value: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    case value(Value)
    case none

    /// The value; nil for `none`.
    package var value: Value? {
        if case .value(let value) = self { value } else { nil }
    }
}
