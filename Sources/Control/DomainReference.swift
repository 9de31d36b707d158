/// A reference to a domain: its name, or a path in its mount.
package struct DomainReference: Codable, Hashable, Sendable {
    package var text: String
    /// The argument as an absolute path.
    package var path: String

    package init(text: String, path: String) {
        self.text = text
        self.path = path
    }
}
