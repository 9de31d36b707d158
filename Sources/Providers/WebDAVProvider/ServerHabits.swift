import FileProvider
import PathAddressing
import Synchronization

/// What a server does that it does not say, found out by trying it on files of our own.
struct ServerHabits: Codable, Hashable, Sendable {
    /// How a change is made on a condition.
    enum Conditions: String, Codable, Sendable {
        /// Not at all: the server ignores conditions, or refuses all of them.
        case none
        /// By `If` with the resource's own address: RFC 4918 10.4.
        case tagged
        /// By `If-Match`.
        case match
    }

    /// What can be in a name that not every server keeps.
    enum OddPart: String, Codable, CodingKeyRepresentable, CaseIterable, Sendable {
        case controlCharacters = "control characters"
        case question = "?"
        case hash = "#"
        case percent = "%"
        case semicolon = ";"

        /// For a trial.
        var example: String {
            switch self {
            case .controlCharacters: "\n\u{7F}"
            // What is decoded once too often is an A.
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

    /// What becomes of what gets a name of some kind.
    enum NameFate: String, Codable, Sendable {
        case kept
        /// Only when something is sent under such a name, not when it is moved there.
        case sent
        case lost
    }

    /// The value of `Server`: another one may have other habits.
    var server: String?
    /// A move onto something with `Overwrite: F` is refused.
    var refusesOverwriting = false
    /// A move onto something keeps to an `If` about what is there.
    var movesConditionally = false
    var deletions = Conditions.none
    /// What was moved has the tag it had before.
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

extension ServerHabits {
    /// What becomes of a name.
    func fate(of name: String) -> NameFate {
        let fates = OddPart.allCases.filter { $0.isIn(name) }.map { oddNames[$0] ?? .lost }
        return fates.contains(.lost) ? .lost : fates.contains(.sent) ? .sent : .kept
    }

    /// Whether a name is of a kind that not every server keeps.
    static func isOdd(_ name: String) -> Bool { OddPart.allCases.contains { $0.isIn(name) } }
}

/// Stores what the server was found to do, so that it is probed once.
final class HabitStore: Sendable {
    private let store: ReportingStore
    private let known: Mutex<ServerHabits?>
    private static let namespace = ProviderStoreNamespace<ServerHabits>("webdav.capabilities")
    private static let key: ProviderStoreKey = "server"

    init(in store: ReportingStore) {
        self.store = store
        known = Mutex(store.attempt { try $0.get(Self.key, in: Self.namespace) } ?? nil)
    }

    var habits: ServerHabits? { known.withLock { $0 } }

    /// Has a server with another name be probed again.
    func forget(unless server: String?) {
        known.withLock { if $0?.server != server { $0 = nil } }
    }

    /// When the store fails, the user is told, and the server is probed again after the next start.
    func keep(_ habits: ServerHabits) {
        known.withLock { $0 = habits }
        store.attempt { try $0.put(habits, at: Self.key, in: Self.namespace) }
    }
}
