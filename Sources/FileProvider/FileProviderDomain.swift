/// A domain: one remote, mounted on one directory, with one replica.
public struct FileProviderDomain: Hashable, Sendable {
    /// The domain's name; see ``isValid(identifier:)``.
    public var identifier: String
    /// The remote, as the user named it: a path or a URL.
    public var source: String
    /// Whether the domain is mounted read-only. The system then makes no call that changes the remote, and the provider
    /// must not change it either: for example, it does not remove the rest of an interrupted upload.
    public var isReadOnly: Bool

    /// A domain with a name, a source and, by default, write access.
    public init(identifier: String, source: String, isReadOnly: Bool = false) {
        self.identifier = identifier
        self.source = source
        self.isReadOnly = isReadOnly
    }

    /// Whether a text is valid as a domain's name: 1 to 128 bytes without `/`, `:` and control characters, and neither `.`
    /// nor `..`.
    public static func isValid(identifier: String) -> Bool {
        let bytes = identifier.utf8
        return !bytes.isEmpty && bytes.count <= 128 && identifier != "." && identifier != ".."
            && !bytes.contains { $0 == 0x2F || $0 == 0x3A || $0 < 0x20 || $0 == 0x7F }
    }
}
