import FileNames

/// Names that are never sent: what is made under one stays on this machine, and so does all below it.
package struct IgnoredNames: Hashable, Sendable {
    /// Patterns in which `*` stands for anything.
    package var patterns: [String]
    /// Whether the remote takes names that are not UTF-8.
    package var sendsByteNames: Bool

    package init(_ patterns: [String], sendsByteNames: Bool = true) {
        self.patterns = patterns
        self.sendsByteNames = sendsByteNames
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

    package func isSent(_ name: String) -> Bool {
        (sendsByteNames || FileNameText.isUTF8(name)) && pattern(for: name) == nil
    }

    /// Whether every name is sent.
    var isEmpty: Bool { patterns.isEmpty && sendsByteNames }

    /// Identifies a list of patterns. No pattern is empty.
    var text: String { patterns.joined(separator: "/") + (sendsByteNames ? "" : "//") }
}
