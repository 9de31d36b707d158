import FileProvider
import Foundation
import PathAddressing
import Synchronization
import SystemPackage

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

    /// What becomes of what gets a name of some kind.
    enum NameFate: String, Codable, Sendable {
        case kept
        /// Only when something is sent under such a name, not when it is moved there.
        case sent
        case lost

        /// What was sent is not listed.
        mutating func isLostIfSent() {
            if self == .sent { self = .lost }
        }
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
    /// Of names with control characters.
    var controlNames = NameFate.lost
    /// Of names with what means something in addresses.
    var markedNames = NameFate.lost
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
}

extension ServerHabits {
    /// What becomes of a name.
    func fate(of name: String) -> NameFate {
        let fates = [
            Self.hasControls(name) ? controlNames : .kept, Self.hasMarks(name) ? markedNames : .kept,
        ]
        return fates.contains(.lost) ? .lost : fates.contains(.sent) ? .sent : .kept
    }

    /// Whether a name is of a kind that not every server keeps.
    static func isOdd(_ name: String) -> Bool { hasControls(name) || hasMarks(name) }

    private static func hasControls(_ name: String) -> Bool {
        name.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }

    private static func hasMarks(_ name: String) -> Bool {
        name.utf8.contains { "?#%;".utf8.contains($0) }
    }
}

/// Where habits are kept, so that a server is tried once.
final class HabitStore: Sendable {
    private let file: FilePath
    private let known = Mutex<ServerHabits?>(nil)

    init(in directory: FilePath) {
        file = directory.appending("webdav.json")
        let data = FileManager.default.contents(atPath: file.string)
        let habits = data.flatMap { try? JSONDecoder().decode(ServerHabits.self, from: $0) }
        known.withLock { $0 = habits }
    }

    var habits: ServerHabits? { known.withLock { $0 } }

    /// A server of another name is tried again.
    func forget(unless server: String?) {
        known.withLock { if $0?.server != server { $0 = nil } }
    }

    func keep(_ habits: ServerHabits) {
        known.withLock { $0 = habits }
        guard let data = try? JSONEncoder().encode(habits) else { return }
        // Without it the server is tried again.
        try? data.write(to: URL(fileURLWithPath: file.string), options: .atomic)
    }
}
