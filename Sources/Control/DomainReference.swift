/// A domain, by its name or by a path in its mount.
package struct DomainReference: Codable, Hashable, Sendable {
    /// What the user wrote.
    package var text: String
    /// The same as an absolute path.
    package var path: String

    package init(text: String, path: String) {
        self.text = text
        self.path = path
    }
}
