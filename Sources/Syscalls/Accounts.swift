import Glibc

/// Users and groups by name. (getpwnam(3), getgrnam(3))
package enum Accounts {
    /// - Returns: nil for a name that no account has.
    package static func user(named name: String) -> UInt32? { getpwnam(name)?.pointee.pw_uid }

    /// - Returns: nil for a name that no group has.
    package static func group(named name: String) -> UInt32? { getgrnam(name)?.pointee.gr_gid }
}
