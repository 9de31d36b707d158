import Foundation

/// What a client wants done with items, by the calls that people's actions are. Paths are absolute.
package enum ItemsCommand: Codable, Hashable, Sendable {
    /// Makes directories, in directories that are there.
    case createDirectories(paths: [String])
    case rename(path: String, name: String)
    /// Moves items into a directory of the same domain.
    case move(paths: [String], directory: String)
    /// Copies files of this machine into a directory.
    case importDocuments(files: [String], directory: String)
    /// Deletes for good, directories with all below them.
    case delete(paths: [String])
    /// Nil takes the rank away.
    case setFavoriteRank(paths: [String], rank: Int64?)
    case setLastUsedDate(paths: [String], seconds: Int64, nanoseconds: Int64)
    /// Nil takes the tags away.
    case setTagData(paths: [String], data: Data?)
    /// Sends what is pending at and below the items now, and these fields of the items themselves, changed or not; answered
    /// when it is on the remote.
    case upload(paths: [String], fields: [String])

    /// Whether it may have something listed, which a process must be allowed to cause.
    package var mayFetch: Bool {
        switch self {
        case .upload, .setFavoriteRank, .setLastUsedDate, .setTagData: false
        case .createDirectories, .rename, .move, .importDocuments, .delete: true
        }
    }
}

/// What acting on items came to.
package struct ItemsReport: Codable, Hashable, Sendable {
    /// What was done, each as it is now; nothing for what was deleted.
    package var items: [ItemInformation]
    /// What was not done, each with its reason.
    package var refusals: [Refusal]

    package init(items: [ItemInformation] = [], refusals: [Refusal] = []) {
        self.items = items
        self.refusals = refusals
    }
}
