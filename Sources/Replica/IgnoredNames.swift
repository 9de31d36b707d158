/// Names that are never sent: what is made under one stays on this machine, and so does all below it.
package struct IgnoredNames: Hashable, Sendable {
    /// Patterns in which `*` stands for anything.
    package var patterns: [String]

    package init(_ patterns: [String]) {
        self.patterns = patterns
    }

    package static let none = IgnoredNames([])

    /// Locks and swap files of programs that have a file open, and what they write before they rename it into place.
    package static let usual = IgnoredNames([
        ".~lock.*#", "~$*", ".*.swp", ".*.swo", ".*.swx", ".#*", ".goutputstream-*", ".DS_Store",
    ])

    /// The pattern that a name fits; nil for a name that is sent.
    package func pattern(for name: String) -> String? {
        patterns.first { NamePattern.matches(name, $0) }
    }

    /// What tells one list from another.
    var text: String { patterns.joined(separator: "/") }
}
