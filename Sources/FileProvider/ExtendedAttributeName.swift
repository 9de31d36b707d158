/// How ``FileProviderItem/extendedAttributes`` names attributes of all namespaces.
///
/// An attribute of the `user.` namespace has its name without that prefix, such as `mime_type`. An attribute of another
/// namespace has two slashes and its full name, such as `//system.posix_acl_access` or `//trusted.md5sum`. A `user.`
/// attribute whose own name begins with two slashes is written in full as well, so each name has exactly one key.
public enum ExtendedAttributeName {
    /// The key of an attribute in ``FileProviderItem/extendedAttributes``.
    ///
    /// - Parameter name: the full name, as `setxattr(2)` takes it.
    public static func key(of name: String) -> String {
        guard name.utf8.starts(with: userPrefix.utf8) else { return marker + name }
        let own = String(Substring(name.utf8.dropFirst(userPrefix.utf8.count)))
        return own.utf8.starts(with: marker.utf8) ? marker + name : own
    }

    /// The full name of an attribute, as `setxattr(2)` takes it.
    ///
    /// - Parameter key: a key of ``FileProviderItem/extendedAttributes``.
    public static func fullName(of key: String) -> String {
        key.utf8.starts(with: marker.utf8)
            ? String(Substring(key.utf8.dropFirst(marker.utf8.count))) : userPrefix + key
    }

    /// Whether Yonder keeps an attribute and sends it to remotes that can store it: all of `user.` and `trusted.`, POSIX
    /// ACLs, and those of `security.` that belong to the file and not to the security module of one machine.
    ///
    /// - Parameter name: the full name.
    public static func isKept(_ name: String) -> Bool {
        let bytes = name.utf8
        if bytes.starts(with: userPrefix.utf8) || bytes.starts(with: "trusted.".utf8) { return true }
        if name == accessList || name == defaultAccessList { return true }
        guard bytes.starts(with: "security.".utf8) else { return false }
        return !ofOneMachine.contains { bytes.starts(with: $0.utf8) }
    }

    /// Whether an attribute is of the `user.` namespace, by its key.
    package static func isOfUser(_ key: String) -> Bool { fullName(of: key).utf8.starts(with: userPrefix.utf8) }

    /// The full names of the attributes that hold a POSIX ACL.
    public static let accessList = "system.posix_acl_access"
    /// The full name of the attribute with the default POSIX ACL of a directory.
    public static let defaultAccessList = "system.posix_acl_default"

    private static let userPrefix = "user."
    private static let marker = "//"
    private static let ofOneMachine = [
        "security.selinux", "security.SMACK64", "security.apparmor", "security.ima", "security.evm",
    ]
}
