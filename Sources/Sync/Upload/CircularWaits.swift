import FileProvider
import Replica

/// The changes of a ``PendingSnapshot`` that wait for others, to find those that wait for each other in a circle.
///
/// A change that is ready, is held back for some time or is not in the snapshot proceeds without help, so what waits for it only has to
/// wait. A circle ends only when one of its items is moved aside.
struct CircularWaits {
    private var items: [Int64: PendingEntry] = [:]
    private var removals: [Int64: PendingRemoval] = [:]
    /// In the order of the snapshot, for equal results.
    private var rows: [Int64] = []
    /// The items that are to leave a directory, by their identifiers and by the directory.
    private var moves: [ItemIdentifier: Int64] = [:]
    private var contents: [ItemIdentifier: [PendingMark]] = [:]

    mutating func add(_ pending: PendingEntry) {
        let item = pending.item
        // A hidden item gets a name with the next changes from the remote.
        guard !item.isHidden else { return }
        items[item.id] = pending
        rows.append(item.id)
        if item.changedFields.contains(.parentItemIdentifier), let identifier = item.identifier {
            moves[identifier] = item.id
            if let parent = item.base.parent { contents[parent, default: []].append(.item(item.id)) }
        }
    }

    mutating func add(_ removal: PendingRemoval) {
        removals[removal.deletion.id] = removal
        contents[removal.deletion.parent, default: []].append(.deletion(removal.deletion.id))
    }

    /// One item of each circle that is found, to be moved aside. A circle that is left, because it shares a part with another, is found
    /// after that one has ended.
    ///
    /// - Parameter isBusy: whether an operation runs that touches an item. It may end the circle.
    func itemsToMoveAside(isBusy: (PendingEntry) -> Bool) -> [PendingEntry] {
        var chosen: [PendingEntry] = []
        var isChosen: Set<PendingMark> = []
        var isDone: Set<PendingMark> = []
        for row in rows where !isDone.contains(.item(row)) {
            // A loop, because renames may make chains of many thousand items.
            var path = [(mark: PendingMark.item(row), rest: waits(of: .item(row)))]
            var positions = [PendingMark.item(row): 0]
            while let last = path.last {
                guard let next = path[path.count - 1].rest.popLast() else {
                    positions[last.mark] = nil
                    isDone.insert(last.mark)
                    path.removeLast()
                    continue
                }
                if isDone.contains(next) { continue }
                guard let position = positions[next] else {
                    positions[next] = path.count
                    path.append((next, waits(of: next)))
                    continue
                }
                let circle = path[position...].map { $0.mark }
                let members = circle.compactMap { item($0) }
                guard isChosen.isDisjoint(with: circle), let aside = Self.itemToMoveAside(of: members),
                    !members.contains(where: isBusy)
                else { continue }
                isChosen.insert(.item(aside.item.id))
                chosen.append(aside)
            }
        }
        return chosen
    }

    /// A name that no program gives a file.
    static func asideName(_ row: Int64) -> String { ".yonder-aside-\(row)" }

    private func item(_ mark: PendingMark) -> PendingEntry? {
        if case .item(let row) = mark { items[row] } else { nil }
    }

    /// What has to be sent before, as far as that waits, too.
    private func waits(of mark: PendingMark) -> [PendingMark] {
        switch mark {
        case .deletion(let id): return removals[id].flatMap { contents[$0.deletion.identifier] } ?? []
        case .item(let row):
            guard let pending = items[row] else { return [] }
            var marks = pending.predecessors
            // What lies between the directory and its new place has to leave it.
            marks += (pending.directoriesBetween ?? []).compactMap { moves[$0] }.map(PendingMark.item)
            return marks
        case .reimport: return []
        }
    }

    /// An item of a circle whose move aside ends that: it has then neither a name that is waited for, nor is it in a directory that
    /// is to be deleted or to be moved below itself. Of a directory that is itself to be moved below itself only the name may be in
    /// the way.
    ///
    /// Each circle has one. Items that are aside already, each in its place, do not wait for each other: no item waits for their names,
    /// and they are where none of the directories has to be left.
    private static func itemToMoveAside(of members: [PendingEntry]) -> PendingEntry? {
        let candidates = members.filter(canBeMovedAside)
        return candidates.first { !$0.isBelowItself } ?? candidates.first
    }

    /// Whether the remote has an item, and another place for it than the present one.
    private static func canBeMovedAside(_ pending: PendingEntry) -> Bool {
        let item = pending.item
        guard item.identifier != nil, let directory = pending.directoryWhenAside else { return false }
        return item.base.name != asideName(item.id) || item.base.parent != directory
    }
}
