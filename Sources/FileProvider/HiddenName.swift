/// The names of a provider's temporary files on the remote. They are never shown as items; an old one was left by a crash.
public enum HiddenName {
    /// How hidden names begin.
    public static let prefix = ".yonder-partial-"

    /// Returns a new random name.
    public static func make() -> String {
        prefix + String(UInt64.random(in: .min ... .max), radix: 16)
    }

    /// Whether a name is hidden.
    public static func isOne(_ name: String) -> Bool { name.utf8.starts(with: prefix.utf8) }
}
