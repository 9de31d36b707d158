/// The paths that an operation or an observation is about, as text whose bytes are compared.
package enum PathExtent: Sendable, Hashable {
    case exactly(String)
    /// Every path that begins with this text, and the text itself.
    case below(String)
    /// Every path that begins with this text and has no other slash, except at its end.
    case within(String)

    /// Whether a path may lie in both extents. ``within(_:)`` counts as ``below(_:)``.
    package func overlaps(_ other: PathExtent) -> Bool {
        switch (self, other) {
        case (.exactly(let one), .exactly(let two)): one.utf8.elementsEqual(two.utf8)
        case (.exactly(let path), .below(let prefix)), (.exactly(let path), .within(let prefix)),
            (.below(let prefix), .exactly(let path)), (.within(let prefix), .exactly(let path)):
            path.utf8.starts(with: prefix.utf8)
        case (.below(let one), .below(let two)), (.below(let one), .within(let two)),
            (.within(let one), .below(let two)), (.within(let one), .within(let two)):
            one.utf8.starts(with: two.utf8) || two.utf8.starts(with: one.utf8)
        }
    }

    package func contains(_ path: [UInt8]) -> Bool {
        guard path.starts(with: text.utf8) else { return false }
        return switch self {
        case .exactly(let text): path.count == text.utf8.count
        case .below: true
        case .within(let prefix): !path.dropFirst(prefix.utf8.count).dropLast().contains(UInt8(ascii: "/"))
        }
    }

    /// What all paths in the extent begin with.
    var text: String {
        switch self {
        case .exactly(let text), .below(let text), .within(let text): text
        }
    }
}
