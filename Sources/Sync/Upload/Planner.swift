import FileProvider
import Replica

/// Which operations are possible now: a function of the replica, of the time, and of what is under way.
///
/// A parent is made before what it holds; a name is used once whoever had it on the remote is gone from it; a directory is
/// deleted after all it contained, and its time is set after all it contains.
struct Planner: Sendable {
    /// Why an item's changes can be sent, or not.
    enum Readiness: Hashable, Sendable {
        case ready(ItemFields)
        /// Somebody else has to go first.
        case waits
        /// Another item has the name on the remote, and has to give it up first.
        case waitsForName
        /// Not before this moment.
        case notBefore(FileTimestamp)
        case nothing
    }

    /// An operation, and what it is about: operations about the same thing run one after the other.
    struct Step: Sendable {
        var operation: SyncOperation
        var footprint: Footprint
    }

    struct Plan: Sendable {
        var steps: [Step] = []
        /// Items that wait for names: when nothing else is possible, they wait for each other.
        var blocked: [Step] = []
        /// When to plan again, as far as only time is waited for.
        var next: FileTimestamp?

        mutating func wait(until time: FileTimestamp) {
            next = next.map { min($0, time) } ?? time
        }
    }

    let replica: Replica
    /// How long an item has to be left alone before it is sent: saving often is several changes in a row.
    var delay: Duration = .seconds(1)
    /// How long a file that is open for writing has to be left alone.
    var writtenDelay: Duration = .seconds(5)
    /// An item that is never left alone is sent this long after the first change that the remote does not have.
    var longestDelay: Duration = .seconds(30)
    /// Likewise a file that is open for writing, from a copy of what it contains at that moment.
    var longestWrittenDelay = usualLongestWrittenDelay
    static let usualLongestWrittenDelay = Duration.seconds(50)

    /// Whether nothing may be changed on the remote: then items are only offered to be recognized.
    var isReadOnly = false

    init(_ replica: Replica) {
        self.replica = replica
    }

    /// The directories above directories, as far as one plan has asked for them: files come many to a directory.
    private struct Ancestors {
        private var known: [ItemIdentifier: Set<ItemIdentifier>] = [:]

        mutating func above(_ directory: ItemIdentifier, in replica: Replica) throws -> Set<ItemIdentifier> {
            if let known = known[directory] { return known }
            let found = try replica.database.remoteAncestors(from: directory)
            known[directory] = found
            return found
        }
    }

    private static let batch = 256
    /// How often it is looked whether a file that was removed or replaced here is still in use.
    private static let pauseForReaders = Duration.milliseconds(200)
    /// The row up to which items have been offered again in the present turn.
    private var offered: Int64 = 0

    /// Plans up to so many operations.
    mutating func plan(
        at now: FileTimestamp, limit: Int, isHurried: Bool, isBusy: (Footprint) -> Bool
    ) throws -> Plan {
        var plan = Plan()
        if isReadOnly {
            try planOffers(&plan, at: now, limit: limit, isBusy: isBusy)
            return plan
        }
        for deletion in try replica.database.pendingDeletions() where plan.steps.count < limit {
            let step = Step(operation: .deletion(deletion.id), footprint: try footprint(of: deletion))
            if isBusy(step.footprint) { continue }
            if deletion.parent.isPlaceholder { continue }
            switch try readiness(of: deletion, at: now, isHurried: isHurried) {
            case .ready: plan.steps.append(step)
            case .notBefore(let time): plan.wait(until: time)
            case .waits, .waitsForName, .nothing: break
            }
        }
        var row: Int64 = 0
        var ancestors = Ancestors()
        while plan.steps.count < limit {
            let items = try replica.database.pendingItems(after: row, limit: Self.batch)
            for (item, state) in items where plan.steps.count < limit {
                row = item.id
                if item.isToBeOffered { continue }
                switch try readiness(of: item, state, at: now, isHurried: isHurried) {
                case .ready:
                    let step = Step(
                        operation: Self.operation(for: item), footprint: try footprint(of: item, knowing: &ancestors))
                    if !isBusy(step.footprint) { plan.steps.append(step) }
                case .notBefore(let time): plan.wait(until: time)
                case .waitsForName:
                    guard item.identifier != nil else { continue }
                    let footprint = try footprint(of: item, knowing: &ancestors)
                    if !isBusy(footprint) {
                        plan.blocked.append(Step(operation: .moveAside(row: item.id), footprint: footprint))
                    }
                case .waits, .nothing: break
                }
            }
            guard items.count == Self.batch, let last = items.last else { break }
            row = last.item.id
        }
        try planOffers(&plan, at: now, limit: limit, isBusy: isBusy)
        return plan
    }

    /// Items whose identifiers were given up, in turns from the first row to the last: a directory before what it holds.
    private mutating func planOffers(
        _ plan: inout Plan, at now: FileTimestamp, limit: Int, isBusy: (Footprint) -> Bool
    ) throws {
        let room = min(limit - plan.steps.count, Self.batch)
        guard room > 0, try !replica.database.isMarkingReimport() else { return }
        var offers = try replica.database.readyOffers(after: offered, at: now, limit: room)
        if offers.isEmpty, offered > 0 {
            offers = try replica.database.readyOffers(after: 0, at: now, limit: room)
        }
        offered = offers.last?.row ?? 0
        for offer in offers {
            let step = Step(operation: .creation(row: offer.row), footprint: Footprint(offer))
            if !isBusy(step.footprint) { plan.steps.append(step) }
        }
        if plan.steps.isEmpty, let next = try replica.database.nextOffer(after: now) { plan.wait(until: next) }
    }

    /// What an operation on an item is about by now.
    func footprint(of item: ItemRecord) throws -> Footprint {
        var ancestors = Ancestors()
        return try footprint(of: item, knowing: &ancestors)
    }

    /// What a deletion is about by now.
    func footprint(of deletion: PendingDeletion) throws -> Footprint {
        var footprint = Footprint(deletion)
        footprint.ancestors = try replica.database.remoteAncestors(from: deletion.parent)
        return footprint
    }

    /// What sending an item is about: the item, the name it has on the remote and the one it is to have.
    private func footprint(of item: ItemRecord, knowing known: inout Ancestors) throws -> Footprint {
        var footprint = Footprint(identifiers: [item.identifier ?? item.placeholder], places: [])
        if let parent = item.base.parent, let name = item.base.name {
            footprint.places.insert(Footprint.Place(parent: parent, name: name))
            footprint.ancestors = try known.above(parent, in: replica)
        }
        if let parent = try item.parent.flatMap({ try replica.database.item(ofInode: $0)?.identifier }) {
            footprint.places.insert(Footprint.Place(parent: parent, name: item.name))
            if parent != item.base.parent {
                footprint.ancestors.formUnion(try known.above(parent, in: replica))
            }
        }
        if item.inode.kind == .directory, !item.changedFields.isDisjoint(with: [.filename, .parentItemIdentifier]) {
            footprint.movedDirectory = item.identifier
        }
        return footprint
    }

    static func operation(for item: ItemRecord) -> SyncOperation {
        item.identifier == nil ? .creation(row: item.id) : .modification(row: item.id)
    }

    /// Whether an item's changes can be sent now, and which.
    func readiness(
        of item: ItemRecord, _ state: PendingState, at now: FileTimestamp, isHurried: Bool
    ) throws -> Readiness {
        let database = replica.database
        var fields = item.changedFields
        guard !fields.isEmpty, !item.isExcluded else { return .nothing }
        if let time = state.nextTry, time > now { return .notBefore(time) }
        let due = min(item.inode.changedAt.advanced(by: delay), state.since.advanced(by: longestDelay))
        if !isHurried, due > now { return .notBefore(due) }
        if item.inode.contentStamp != nil, fields.contains(.contents) {
            let quiet = try quietTime(of: item, since: state.since, isHurried: isHurried)
            if quiet > now { return .notBefore(quiet) }
        }
        // A file that this one has replaced is still being read here, from the remote.
        if fields.contains(.contents), let identifier = item.identifier, try database.isKeptOnRemote(identifier) {
            return .notBefore(now.advanced(by: Self.pauseForReaders))
        }
        if item.inode.kind == .directory, fields.contains(.contentModificationDate),
            try database.directoryHasPendingChildren(item.inode.number, identifier: item.identifier)
        {
            fields.remove(.contentModificationDate)
        }
        if item.inode.number == .root { return fields.isEmpty ? .waits : .ready(fields) }
        guard let parent = item.parent, !item.isHidden,
            let directory = try database.item(ofInode: parent)?.identifier
        else { return .waits }
        guard !fields.isEmpty else { return .waits }
        if item.inode.kind == .directory, fields.contains(.parentItemIdentifier), let identifier = item.identifier,
            try database.isBelowOnRemote(directory, identifier)
        {
            return .waits
        }
        // In the trash many may have one name.
        let needsName = item.identifier == nil || !fields.isDisjoint(with: [.filename, .parentItemIdentifier])
        if needsName, directory != .trashContainer {
            switch try database.holder(ofRemoteName: item.name, in: directory, otherThan: item.id) {
            case nil: break
            case .deletion(let id):
                return try database.isKeptOnRemote(deletion: id)
                    ? .notBefore(now.advanced(by: Self.pauseForReaders)) : .waitsForName
            case .item(_, let changes):
                if !changes.isDisjoint(with: [.filename, .parentItemIdentifier]) { return .waitsForName }
            }
        }
        return .ready(fields)
    }

    func readiness(of deletion: PendingDeletion, at now: FileTimestamp, isHurried: Bool) throws -> Readiness {
        if let time = deletion.nextTry, time > now { return .notBefore(time) }
        let due = deletion.since.advanced(by: delay)
        if !isHurried, due > now { return .notBefore(due) }
        // What it contained cannot be found before itself is.
        if deletion.isToBeFound { return .ready([]) }
        // The file is still being read here, from the remote.
        if try replica.database.isKeptOnRemote(deletion.identifier) {
            return .notBefore(now.advanced(by: Self.pauseForReaders))
        }
        if deletion.kind == .directory, try replica.database.remoteDirectoryIsWaiting(deletion.identifier) {
            return .waits
        }
        return .ready([])
    }

    private func quietTime(
        of item: ItemRecord, since: FileTimestamp, isHurried: Bool
    ) throws -> FileTimestamp {
        let status = try replica.contentStatus(of: item.inode.number)
        let quiet = status.changedAt.advanced(by: isHurried ? .zero : writtenDelay)
        // A larger file could only be sent as it is, and would be written again before all of it is there.
        guard status.size <= ContentSnapshot.mostCopied else { return quiet }
        return min(quiet, since.advanced(by: longestWrittenDelay))
    }
}
