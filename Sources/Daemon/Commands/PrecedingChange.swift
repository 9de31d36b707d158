import Control
import FileProvider
import Replica
import Sync

/// What has to be sent before a change: a directory above the item that the remote does not have, or, before the date of a directory,
/// what was changed in it.
struct PrecedingChange {
    private enum Place {
        case above
        case inside
    }

    private let place: Place
    private let path: String
    /// What keeps it from being sent, and when that is tried again if not now; nil if it only waits for its turn.
    private let obstacle: (error: FileProviderError, nextTry: FileTimestamp?)?

    /// A directory above an item that cannot be sent; nil if nothing has failed there, or the item itself has.
    static func failed(above item: ItemRecord, _ resolver: PathResolver) throws -> PrecedingChange? {
        let database = resolver.host.replica.database
        guard let (directory, error, nextTry) = try database.obstacle(toSendingDirectoriesAbove: item.id) else {
            return nil
        }
        let sending = resolver.host.engine.changesUnderWay
        return PrecedingChange(
            place: .above, path: resolver.path(of: directory) ?? directory.name,
            obstacle: (error: error, nextTry: sending.contains(.item(directory.id)) ? nil : nextTry))
    }

    /// The topmost directory above an item that is to be sent before it; nil if the remote has the one above it.
    static func queued(above item: ItemRecord, _ resolver: PathResolver) throws -> PrecedingChange? {
        let database = resolver.host.replica.database
        guard let top = try database.itemAndNewDirectories(above: item.id).last, top.id != item.id,
            !top.isToBeOffered
        else { return nil }
        return PrecedingChange(place: .above, path: resolver.path(of: top) ?? top.name, obstacle: nil)
    }

    /// Something in a directory for which the directory's date waits; nil where the date does not wait.
    static func inside(_ directory: ItemRecord, _ resolver: PathResolver) throws -> PrecedingChange? {
        let database = resolver.host.replica.database
        guard let mark = try database.changeBeforeDate(of: directory), let path = try shownPath(of: mark, resolver)
        else { return nil }
        let sending = resolver.host.engine.changesUnderWay
        let obstacle = try database.obstacle(toSending: mark).map { obstacle in
            let failed = obstacle.row.map(PendingMark.item) ?? mark
            return (error: obstacle.error, nextTry: sending.contains(failed) ? nil : obstacle.nextTry)
        }
        return PrecedingChange(place: .inside, path: path, obstacle: obstacle)
    }

    static func shownPath(of mark: PendingMark, _ resolver: PathResolver) throws -> String? {
        let database = resolver.host.replica.database
        switch mark {
        case .item(let row):
            guard let item = try database.item(row: row) else { return nil }
            return resolver.path(of: item) ?? item.name
        case .deletion(let row):
            guard let deletion = try database.pendingDeletions(after: row - 1, limit: 1).first, deletion.id == row
            else { return nil }
            return ([resolver.mountpoint] + (try database.path(of: deletion))).joined(separator: "/")
        case .reimport: return nil
        }
    }

    // MARK: - In words

    /// The error of the change that waits; nil if what has to be sent before it has not failed.
    var failure: ItemInformation.Failure? {
        guard let obstacle else { return nil }
        let words =
            switch place {
            case .above: "'\(path)' has to be sent first"
            case .inside: "its date waits for '\(path)' in it"
            }
        return ItemInformation.Failure(
            code: obstacle.error.code.rawValue, message: "\(words): \(obstacle.error.message)", attempts: 0,
            nextTry: obstacle.nextTry.map(Timestamp.text))
    }

    /// The sentence about the item that waits.
    var sentence: String {
        let cause = obstacle.map { ": \($0.error.message) (\($0.error.code.rawValue))" } ?? ""
        return switch place {
        case .above: "It waits for '\(path)', which has to be sent first\(cause)."
        case .inside: "Its date waits for what is in it: '\(path)' has to be sent first\(cause)."
        }
    }
}
