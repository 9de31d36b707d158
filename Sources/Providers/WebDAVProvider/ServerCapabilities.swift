import FileProvider
import PathAddressing
import Synchronization

/// What a server does and does not announce, found out by a ``CapabilityProbe``.
struct ServerCapabilities: Codable, Hashable, Sendable {
    /// How the server takes preconditions.
    enum Conditions: String, Codable, Sendable {
        /// It ignores preconditions, or refuses every request with one.
        case none
        /// In `If` with the resource's URL (RFC 4918, 10.4).
        case tagged
        /// In `If-Match`.
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
    /// Some were kept by this machine.
    var hasAttributes = false
    /// New content of the same length within a second has another tag.
    var tagsFollowContent = false
    /// What is sent to a name that is taken is refused with `If-None-Match: *`.
    var refusesReplacing = false
    /// What is being sent is not seen before it is whole, and never when it was broken off.
    var showsOnlyWhole = false
    /// `HEAD` says the same of a file as a listing.
    var headsAreTrue = false
    /// Content whose length is not said before is taken.
    var takesAnyLength = false
    /// A report of what has changed in a collection tells of collections in it that came; nil where that was not tried.
    var reportsCollections: Bool?
    /// A report of what has changed below a collection tells of what came in collections in it; likewise.
    var reportsAll: Bool?
}

extension ServerCapabilities {
    /// What becomes of a name.
    func fate(of name: String) -> NameFate {
        let fates = OddPart.allCases.filter { $0.isIn(name) }.map { oddNames[$0] ?? .lost }
        return fates.contains(.lost) ? .lost : fates.contains(.sent) ? .sent : .kept
    }

    /// Whether a name is of a kind that not every server keeps.
    static func isOdd(_ name: String) -> Bool { OddPart.allCases.contains { $0.isIn(name) } }
}

/// Stores what the server was found to do, so that it is probed once.
final class CapabilityStore: Sendable {
    private let store: ReportingStore
    private let known: Mutex<ServerCapabilities?>
    private static let namespace = ProviderStoreNamespace<ServerCapabilities>("webdav.capabilities")
    private static let key: ProviderStoreKey = "server"

    init(in store: ReportingStore) {
        self.store = store
        known = Mutex(store.attempt { try $0.get(Self.key, in: Self.namespace) } ?? nil)
    }

    var capabilities: ServerCapabilities? { known.withLock { $0 } }

    /// Has a server with another name be probed again.
    func forget(unless server: String?) {
        known.withLock { if $0?.server != server { $0 = nil } }
    }

    /// When the store fails, the user is told, and the server is probed again after the next start.
    func keep(_ capabilities: ServerCapabilities) {
        known.withLock { $0 = capabilities }
        store.attempt { try $0.put(capabilities, at: Self.key, in: Self.namespace) }
    }
}
