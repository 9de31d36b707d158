package struct WebDAVCredentials: Hashable, Sendable, CustomStringConvertible {
    package var user: String
    package var password: String

    /// The user name alone, so that no log has the password.
    package var description: String { user }
}
