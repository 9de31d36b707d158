/// A reference to a domain: its name, or a path in its mount.
package struct DomainReference: Codable, Hashable, Sendable {
    package var text: String
    /// The argument as an absolute path.
    package var path: String
    /// The same, where the last component is a symbolic link that ``path`` follows.
    package var link: String?

    package init(text: String, path: String, link: String? = nil) {
        self.text = text
        self.path = path
        self.link = link
    }
}
