import FileProvider

/// Names for the numbers of states in statements: `kind = \(kind: .directory)`.
///
/// Statements hold these as literals and not as arguments, because SQLite uses a partial index only where the
/// statement's text implies the condition of the index. The text of a statement that runs for each lookup, creation or
/// listed item is a static property, so that it is made once.
extension DefaultStringInterpolation {
    mutating func appendInterpolation(kind: InodeKind) { appendInterpolation(kind.rawValue) }
    mutating func appendInterpolation(content: ContentState) { appendInterpolation(content.rawValue) }
    mutating func appendInterpolation(field: ItemFields) { appendInterpolation(field.rawValue) }
    mutating func appendInterpolation(exclusion: Exclusion) { appendInterpolation(exclusion.rawValue) }
    mutating func appendInterpolation(trash: TrashRole) { appendInterpolation(trash.rawValue) }
    mutating func appendInterpolation(policy: ContentPolicy) { appendInterpolation(policy.rawValue) }
    mutating func appendInterpolation(capability: ItemCapabilities) { appendInterpolation(capability.rawValue) }
    mutating func appendInterpolation(comparison: ComparisonState) { appendInterpolation(comparison.rawValue) }
    mutating func appendInterpolation(nameless: NamelessReason) { appendInterpolation(nameless.rawValue) }
    mutating func appendInterpolation(inode: InodeNumber) { appendInterpolation(inode.rawValue) }
}
