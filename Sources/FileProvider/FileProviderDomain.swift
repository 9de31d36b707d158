/// One remote, mounted at one folder, with one replica.
public struct FileProviderDomain: Hashable, Sendable {
    /// The domain's name: not empty, without `/`, `:` and control characters.
    public var identifier: String
    /// Where the remote is, as the user named it.
    public var source: String
    /// Whether the domain is mounted read-only. The system then makes no call that changes the remote, and the provider
    /// changes nothing there by itself either: it does not remove what an interrupted upload left behind.
    public var isReadOnly: Bool

    public init(identifier: String, source: String, isReadOnly: Bool = false) {
        self.identifier = identifier
        self.source = source
        self.isReadOnly = isReadOnly
    }

    /// Whether a text can name a domain.
    public static func isValid(identifier: String) -> Bool {
        let bytes = identifier.utf8
        return !bytes.isEmpty && bytes.count <= 128 && identifier != "." && identifier != ".."
            && !bytes.contains { $0 == 0x2F || $0 == 0x3A || $0 < 0x20 || $0 == 0x7F }
    }
}
