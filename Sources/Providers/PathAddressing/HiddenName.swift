import FileProvider

/// Names of what a remote needs for itself: files on their way in, and what its habits are tried on. They are never shown,
/// and what has one for long was left by a crash.
package enum HiddenName {
    package static let prefix = ".yonder-partial-"

    /// A name that nothing has.
    package static func make() -> String {
        prefix + String(UInt64.random(in: .min ... .max), radix: 16)
    }

    package static func isOne(_ name: String) -> Bool { name.utf8.starts(with: prefix.utf8) }
}
