import Foundation

/// A command that changes items. Paths are absolute.
package enum ItemsCommand: Codable, Hashable, Sendable {
    case createDirectories(paths: [String])
    case rename(path: String, name: String)
    /// Moves items to a directory of the same domain.
    case move(paths: [String], directory: String)
    /// Copies local files into a directory.
    case importDocuments(files: [String], directory: String)
    /// Deletes permanently, directories recursively.
    case delete(paths: [String])
    /// Nil removes the rank.
    case setFavoriteRank(paths: [String], rank: Int64?)
    case setLastUsedDate(paths: [String], seconds: Int64, nanoseconds: Int64)
    /// Nil removes the tags.
    case setTagData(paths: [String], data: Data?)
    /// Uploads pending changes at and below the items, and these fields of the items themselves, changed or not.
    /// Returns after the upload.
    case upload(paths: [String], fields: [String])

    /// Whether the command may list a directory, for which the process needs permission.
    package var mayFetch: Bool {
        switch self {
        case .upload, .setFavoriteRank, .setLastUsedDate, .setTagData: false
        case .createDirectories, .rename, .move, .importDocuments, .delete: true
        }
    }
}

package struct ItemsReport<Item: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    /// The changed items in their new state, without deleted ones. Items deleted from the trash have their last state.
    package var items: [Item] = []
    package var refusals: [Refusal] = []

    package init() {}
}
