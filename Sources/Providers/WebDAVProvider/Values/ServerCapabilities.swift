import FileProviderPaths

/// How a server behaves where it does not announce it, as a probe before the first change detects it.
struct ServerCapabilities: Codable, Hashable, Sendable {
    /// How the server takes preconditions.
    enum Conditions: String, Codable, Sendable {
        /// It ignores preconditions, or refuses every request with one.
        case none
        /// In `If` with the resource's URL (RFC 4918, 10.4).
        case tagged
        case match
    }

    /// A part of a name that not every server preserves.
    enum OddPart: String, Codable, CodingKeyRepresentable, CaseIterable, Sendable {
        case controlCharacters = "control characters"
        case question = "?"
        case hash = "#"
        case percent = "%"
        case semicolon = ";"

        /// A name part to probe with.
        var example: String {
            switch self {
            case .controlCharacters: "\n\u{7F}"
            // A server that decodes it twice stores an A.
            case .percent: "%41"
            case .question, .hash, .semicolon: rawValue
            }
        }

        func isIn(_ name: String) -> Bool {
            switch self {
            case .controlCharacters: name.utf8.contains { $0 < 0x20 || $0 == 0x7F }
            case .question, .hash, .percent, .semicolon: name.utf8.contains(where: rawValue.utf8.contains)
            }
        }
    }

    /// What the server does with an item whose name has such a part.
    enum NameFate: String, Codable, Sendable {
        case kept
        /// It keeps the name in a PUT, but not in a MOVE.
        case sent
        case lost
    }

    /// The value of the `Server` header. A server with another value is probed again.
    var server: String?
    /// It refuses a MOVE onto an existing item with `Overwrite: F`.
    var refusesOverwriting = false
    /// It checks an `If` about the destination of a MOVE.
    var movesConditionally = false
    var deletions = Conditions.none
    /// A MOVE keeps the ETag.
    var tagsSurviveMoves = false
    var oddNames: [OddPart: NameFate] = [:]
    /// Names that begin with a dot are listed.
    var listsHiddenNames = false
    /// Properties of our own are kept, also through a move, and change nothing else.
    var keepsAttributes = false
    /// This machine has stored some.
    var hasAttributes = false
    /// New content of the same length within a second has another tag.
    var tagsFollowContent = false
    /// It refuses a PUT to an existing item with `If-None-Match: *`.
    var refusesReplacing = false
    /// An upload is visible only when it is complete, and never when it was aborted.
    var showsOnlyWhole = false
    /// HEAD gives the same tag and length of a file as PROPFIND.
    var headsAreTrue = false
    /// It accepts content of unknown length.
    var takesAnyLength = false
    /// The server had no room for attributes: it is probed again at the next start. Nil where it had.
    var lacksRoom: Bool?
    /// A report about a collection includes new collections in it; nil where that was not probed.
    var reportsCollections: Bool?
    /// A report about everything below a collection includes new items in collections in it; nil where that was not probed.
    var reportsAll: Bool?
}

extension ServerCapabilities {
    /// Whether it is worth trying to store attributes.
    var mayKeepAttributes: Bool { keepsAttributes || lacksRoom == true }

    /// The treatment of a path by the server: of any of its names. A server that cuts a name short where it moves something
    /// to it does so with the names of the directories above, too, and replaces another file.
    func fate(of path: RemotePath) -> NameFate {
        let odd = OddPart.allCases.filter { part in path.names.contains { part.isIn($0) } }
        let fates = odd.map { oddNames[$0] ?? .lost }
        return fates.contains(.lost) ? .lost : fates.contains(.sent) ? .sent : .kept
    }

    /// Whether a path has a name with a part that not every server preserves.
    static func isOdd(_ path: RemotePath) -> Bool {
        path.names.contains { name in OddPart.allCases.contains { $0.isIn(name) } }
    }
}
