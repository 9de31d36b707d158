import FileProvider

package enum TrashRole: Int, Hashable, Sendable {
    case none = 0
    /// `.Trash-UID` at the root.
    case top = 1
    /// Its `files`: what lies there is trashed. For the remote it is the trash.
    case files = 2
    /// Its `info`: a file for each of those, saying where it was.
    case information = 3

    /// Whether a name is that of the trash for all users, which an administrator makes: there is none here, and nothing gets the name.
    static func isShared(_ name: String, in parent: InodeNumber) -> Bool {
        parent == .root && name.utf8.elementsEqual(".Trash".utf8)
    }
}

/// Where a trashed item was.
package struct TrashPlace: Hashable, Sendable {
    /// When it was trashed.
    package var date: FileTimestamp
    /// The identifier that its parent had; nil when the parent was not known.
    package var parent: ItemIdentifier?
    /// The directories that held it, the nearest first, up to the root.
    package var ancestors: [InodeNumber]
    /// The name that it had: in the trash it may have another.
    package var name: String

    static func text(of ancestors: [InodeNumber]) -> String {
        ancestors.map { String($0.rawValue) }.joined(separator: " ")
    }

    static func ancestors(in text: String) -> [InodeNumber] {
        text.split(separator: " ").compactMap { Int64($0).map(InodeNumber.init(rawValue:)) }
    }
}
