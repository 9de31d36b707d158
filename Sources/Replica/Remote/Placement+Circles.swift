import FileProvider

/// Directories that the remote has moved to below what is above it here.
extension Placement {
    static let belowItself = "its parent lies below itself"

    /// Whether a directory would lie below itself in a parent whose own move has not been taken in.
    func isBelowItself(_ known: ItemRecord, in parent: InodeNumber) throws -> Bool {
        guard known.inode.kind == .directory, known.parent != parent else { return false }
        return try db.isBelow(parent, known.inode.number)
    }

    /// Leaves a directory where it is, because its new parent lies below it. Comparisons find where both are.
    func leaveInPlace(_ known: ItemRecord, insteadOf newParent: InodeNumber) throws {
        for directory in [newParent, known.parent].compactMap(\.self) { try db.noteIncompleteIfListed(directory) }
        // It made room for another item, and is shown again.
        guard known.isHidden, let parent = known.parent, let own = known.base.name else { return }
        let name = try db.freeName(for: own, in: parent, held: known.id)
        try db.setName(of: known.id, to: name)
        tellKernel([.entry(parent: parent, name: name), .contents(parent)])
    }

    /// A move on the remote would close a circle with moves that were made here: those are taken back, because the
    /// remote's has happened.
    ///
    /// - Returns: false when no local move is in the way.
    func undoMoves(from directory: InodeNumber, to ancestor: ItemRecord) throws -> Bool {
        guard let moved = try movesToUndo(from: directory, to: ancestor) else { return false }
        for (item, origin) in moved {
            guard let parent = item.parent, let base = item.base.name else { continue }
            // Another item may have taken its place meanwhile.
            let name = try db.freeName(for: base, in: origin, held: item.id)
            try db.move(item.id, to: origin, named: name)
            try noteWhereItIs(item.id)
            tellKernel([
                .entry(parent: parent, name: item.name), .contents(parent), .entry(parent: origin, name: name),
                .contents(origin),
            ])
            report(
                "conflict: '\(item.name)' was moved here while the remote moved '\(ancestor.name)' below it: the move here has "
                    + "been undone")
        }
        return try !db.isBelow(directory, ancestor.inode.number)
    }

    /// - Returns: the items whose moves here are taken back, each with the directory in which the remote has it, in this order; nil when
    ///   that does not take a directory from below an ancestor.
    private func movesToUndo(
        from directory: InodeNumber, to ancestor: ItemRecord
    ) throws -> [(item: ItemRecord, origin: InodeNumber)]? {
        // One is enough where the remote's directory of the item is elsewhere.
        var current = directory
        for _ in 0..<ItemRemoval.deepest where current != ancestor.inode.number && current != .root {
            guard let item = try db.item(ofInode: current), let parent = item.parent else { break }
            if let origin = try origin(ofMoved: item), try !db.isBelow(origin, ancestor.inode.number) {
                return [(item, origin)]
            }
            current = parent
        }
        // That directory may have been moved here, too, and so on up to the root: the topmost comes first.
        var moved: [(item: ItemRecord, origin: InodeNumber)] = []
        current = directory
        for _ in 0..<ItemRemoval.deepest where current != .root {
            guard current != ancestor.inode.number, let item = try db.item(ofInode: current) else { return nil }
            if let origin = try origin(ofMoved: item) {
                moved.insert((item, origin), at: 0)
                current = origin
            } else if let parent = item.parent {
                current = parent
            } else {
                return nil
            }
        }
        return current == .root && !moved.isEmpty ? moved : nil
    }

    /// The directory in which the remote has an item that was moved here.
    private func origin(ofMoved item: ItemRecord) throws -> InodeNumber? {
        guard item.changedFields.contains(.parentItemIdentifier), item.base.name != nil, let parent = item.base.parent
        else { return nil }
        return try db.item(parent)?.inode.number
    }
}
