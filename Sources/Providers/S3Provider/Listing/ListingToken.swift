import FileProvider
import Foundation

/// Where a listing goes on, and what its next part depends on.
struct ListingToken: Codable {
    var next: String
    /// The objects that a directory or a link to come may share its name with.
    var objects: [String]
    /// The directories that the last key lay in, in the listing of a tree.
    var open: [TreeWalker.Open]
}

extension ListingToken {
    init(_ bytes: [UInt8]) throws {
        guard let token = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else {
            throw FileProviderError(.pageExpired)
        }
        self = token
    }

    /// - Returns: nil at the end of a listing.
    static func bytes(_ next: String?, objects: [String], open: [TreeWalker.Open] = []) throws -> [UInt8]? {
        try next.map { Array(try JSONEncoder().encode(ListingToken(next: $0, objects: objects, open: open))) }
    }
}
