import FileProvider
import GRDB
import SystemPackage

/// Items that the remote has removed. Content and items that exist only here are not removed with them: they become new
/// items, which are offered to the provider.
package struct ItemRemoval: RemotePart {
    let transaction: RemoteTransaction
    private var names: ShownNames { ShownNames(transaction: transaction) }
    private var trash: RemoteTrash { RemoteTrash(transaction: transaction) }
    private var versions: ContentVersions { ContentVersions(transaction: transaction) }

    /// Removes an item and all below it. Content that a process has open stays until it is closed.
    package func remove(_ item: ItemRecord) throws {
        guard item.inode.number != .root, try !keepLocalWork(in: item) else { return }
        try removeUnchanged(item)
    }

    /// Removes an item and all below it, without a look for what exists only here.
    func removeUnchanged(_ item: ItemRecord) throws {
        if item.inode.kind == .file, try isRestored(item) || removed(above: item).isRestored { reportLoss(of: item) }
        try transferMarks(of: item)
        try discard(item)
    }

    /// Gives the policy, rank and tags of an item to the one that has its name on the remote now, after an atomic save there for
    /// example. If the item's content was here, the other's is fetched.
    private func transferMarks(of item: ItemRecord) throws {
        guard let successor = try successor(of: item) else { return }
        try db.transferMarks(of: item.id, to: successor.id)
        guard successor.inode.kind == .file, successor.inode.content != .materialized,
            try versions.isFetchedAgain(item)
        else { return }
        try db.setFetchedAgain(true, successor.inode.number)
    }

    /// The item that has the name of a removed one on the remote now, and is of its kind.
    private func successor(of item: ItemRecord) throws -> ItemRecord? {
        guard let directory = item.base.parent, let name = item.base.name, item.trash == nil,
            let successor = try db.item(named: name, inRemote: directory, except: item),
            successor.inode.kind == item.inode.kind, successor.trash == nil
        else { return nil }
        return successor
    }

    /// Removes an item and all below it, whatever was changed there.
    private func discard(_ item: ItemRecord) throws {
        try trash.removeInformation(of: item)
        var doomed = [item]
        var nameless: [InodeNumber] = []
        while var next = doomed.popLast() {
            // Another name of it may have gone since it was read.
            if next.inode.linkCount > 1, let inode = try db.inode(next.inode.number) { next.inode = inode }
            if next.inode.kind == .directory { doomed += try db.items(in: next.inode.number) }
            if next.isExcluded { try setAside(next) }
            if next.inode.linkCount <= 1 { try versions.setAsideUnrecorded(next.inode.number) }
            // What is written to it from now on is found when the file is compared the next time.
            if next.identifier != nil, next.inode.contentStamp != nil, next.inode.linkCount <= 1 {
                try db.noteSuperseded(next, by: successor(of: next)?.id)
            }
            // Others may have waited for its change, which would have freed a name.
            if !next.changedFields.isDisjoint(with: [.filename, .parentItemIdentifier]) { noteSomethingToSend() }
            try db.deleteItem(next)
            try db.unlink(next.inode.number, at: now)
            if next.inode.linkCount <= 1 { nameless.append(next.inode.number) }
        }
        // A directory stays until its children no longer name it.
        for number in nameless {
            try db.forgetFailure(of: number)
            if !open.keepsNameless(number) { try versions.drop(number) }
        }
        if let parent = item.parent {
            tellKernel([
                .deletion(parent: parent, child: item.inode.number, name: item.name),
                .entry(parent: parent, name: item.name), .contents(parent),
            ])
            try names.restoreName(item.name, in: parent)
        }
    }

    /// The content of a file that only this machine has outlives the directory that the remote has removed.
    private func setAside(_ item: ItemRecord) throws {
        guard item.trashRole == .none, item.inode.kind == .file, item.inode.linkCount <= 1,
            try db.hasContentFile(item.inode.number),
            let place = try contents.keep(item.inode.number, stamp: now.nanosecondsSince1970)
        else { return }
        report(
            "loss prevented: the remote has removed the directory of '\(item.name)', which was on this machine alone: its "
                + "content has been moved to '\(place)'"
        )
    }

    // MARK: - What exists only here

    /// Keeps what exists only here when the remote has removed an item: it becomes new and is offered again. All that is
    /// not changed here goes.
    ///
    /// - Returns: false when there is nothing to keep, and nothing was done.
    func keepLocalWork(in item: ItemRecord) throws -> Bool {
        let above = try removed(above: item)
        let rows = try rowsWithLocalWork(in: item, above)
        guard !rows.isEmpty else { return false }
        try keep(rows, in: item, above)
        return true
    }

    /// Whether something of an item, or below it, was changed here and is not on the remote.
    func isWorkedOn(_ item: ItemRecord) throws -> Bool {
        guard item.changedFields.isEmpty, item.inode.contentStamp == nil else { return true }
        return try !rowsWithLocalWork(in: item, removed(above: item), isOneEnough: true).isEmpty
    }

    /// The removed directory that contains an item.
    private struct Removed {
        /// The placeholder of a directory that is new here: what the remote has was moved into it. Nil above the item with which
        /// the removal begins.
        var identifier: ItemIdentifier?
        /// Whether it, or one above it, was restored from the trash here, and the remote does not know of that.
        var isRestored = false
    }

    /// Where a removal begins: of what is in a restored directory the remote may tell before it tells of the directory.
    private func removed(above item: ItemRecord) throws -> Removed {
        // As a rule nothing was restored.
        guard try db.isAnythingRestored() else { return Removed() }
        var current = item
        for _ in 0..<Self.deepest {
            guard let parent = current.parent, let above = try db.item(ofInode: parent) else { break }
            if isRestored(above) { return Removed(isRestored: true) }
            current = above
        }
        return Removed()
    }

    private func below(_ item: ItemRecord, in removed: Removed) -> Removed {
        Removed(identifier: item.identifier ?? item.placeholder, isRestored: removed.isRestored || isRestored(item))
    }

    private func isRestored(_ item: ItemRecord) -> Bool {
        item.trash == nil && item.changedFields.contains(.parentItemIdentifier) && item.base.parent == .trashContainer
    }

    /// Items that are still to be visited on the way through a tree, which is a loop: a tree may be deeper than the stack of a thread.
    private struct Level {
        /// Nil above the item with which the removal begins.
        var directory: ItemRecord?
        var removed: Removed
        /// The last one comes first.
        var items: [ItemRecord]
    }

    /// The items at and below one that have something, or contain what has something, that the remote has not.
    ///
    /// - Parameter isOneEnough: whether the search ends with the first one.
    private func rowsWithLocalWork(
        in top: ItemRecord, _ removed: Removed, isOneEnough: Bool = false
    ) throws -> Set<Int64> {
        var rows: Set<Int64> = []
        // A circle of directories, which only a damaged database has, ends.
        var seen: Set<InodeNumber> = []
        var levels = [Level(directory: nil, removed: removed, items: [top])]
        while let last = levels.indices.last {
            guard let item = levels[last].items.popLast() else {
                levels.removeLast()
                continue
            }
            let removed = levels[last].removed
            if try isLocalWork(item, in: removed) {
                rows.insert(item.id)
                for level in levels.reversed() {
                    guard let row = level.directory?.id, rows.insert(row).inserted else { break }
                }
                if isOneEnough { break }
            }
            guard item.inode.kind == .directory, seen.insert(item.inode.number).inserted else { continue }
            levels.append(
                Level(
                    directory: item, removed: below(item, in: removed), items: try db.items(in: item.inode.number)))
        }
        return rows
    }

    /// Whether an item itself has something that the remote has not, beside its attributes.
    private func isLocalWork(_ item: ItemRecord, in removed: Removed) throws -> Bool {
        // An excluded item does not keep a directory that the remote has removed.
        if item.isExcluded || item.inode.kind.itemKind == nil { return false }
        if item.isToBeOffered, item.changedFields.contains(.parentItemIdentifier) { return true }
        if item.identifier == nil, !item.isToBeOffered { return true }
        if item.inode.kind == .file, item.changedFields.contains(.contents) { return true }
        if try mayBeWritten(item) { return true }
        // What was restored here is wanted, although another client has emptied the trash meanwhile.
        if removed.isRestored || isRestored(item), item.inode.kind != .file || item.inode.content == .materialized {
            return true
        }
        return isMovedIn(item, from: removed)
    }

    /// Whether a file that is marked for writing holds what the remote has never had. The kernel writes by itself, so only a comparison
    /// tells. One that is open stays comparable without its name.
    private func mayBeWritten(_ item: ItemRecord) throws -> Bool {
        guard item.inode.contentStamp != nil else { return false }
        guard item.identifier != nil, open.isOpen(item.inode.number) else { return true }
        do {
            return try versions.isWritten(item)
        } catch Errno.noSuchFileOrDirectory {
            // Nothing can be kept of a file whose content file is missing.
            return false
        } catch is Errno {
            return true
        }
    }

    /// Whether an item was moved into a directory that the remote has removed. Where the remote has it, it is not removed:
    /// it stays what it is, and only its place is new.
    private func isMovedIn(_ item: ItemRecord, from removed: Removed) -> Bool {
        guard let removedParent = removed.identifier, let identifier = item.identifier else { return false }
        return item.changedFields.contains(.parentItemIdentifier) && item.base.parent != removedParent
            && !transaction.upcoming.contains(identifier)
    }

    /// Keeps some of the items at and below one, and removes the others.
    private func keep(_ rows: Set<Int64>, in top: ItemRecord, _ removed: Removed) throws {
        var seen: Set<InodeNumber> = []
        var levels = [Level(directory: nil, removed: removed, items: [top])]
        while let last = levels.indices.last {
            guard let item = levels[last].items.popLast() else {
                if let directory = levels.removeLast().directory { try offerAgain(directory) }
                continue
            }
            let removed = levels[last].removed
            if !rows.contains(item.id) {
                try removeUnchanged(item)
            } else if isMovedIn(item, from: removed) {
                // The directory may have been the reason why it could not be sent.
                try retryItem(item.id)
            } else if item.inode.kind == .directory {
                guard seen.insert(item.inode.number).inserted else { continue }
                let inside = below(item, in: removed)
                if inside.isRestored, item.inode.content != .materialized { reportLoss(of: item) }
                levels.append(
                    Level(directory: item, removed: inside, items: try db.items(in: item.inode.number).reversed()))
            } else {
                try offerAgain(item)
            }
        }
    }

    private func reportLoss(of item: ItemRecord) {
        report(
            "'\(item.name)' was restored here, but another client has deleted it from the remote's trash: what was not "
                + "downloaded of it is lost")
    }

    /// Makes an item a new one, which the provider has never heard of.
    package func offerAgain(_ item: ItemRecord) throws {
        if item.isToBeOffered, item.inode.kind != .file || item.inode.content != .materialized {
            // It is offered as soon as what holds it is.
            return try retryItem(item.id)
        }
        try becomeNew(item)
    }

    /// Makes an item one that the provider has never heard of. One that was displaced by the remote's item of its name is
    /// shown again, under a name that is free: as a conflict copy when its content was changed here.
    func becomeNew(_ item: ItemRecord, exclusion: Exclusion = .none) throws {
        if item.isHidden, let wanted = item.base.name {
            // Without a directory it was last in one that was removed here.
            let parent = item.parent ?? .root
            if exclusion == .none, try isReplaced(item, named: wanted, in: parent) {
                let name = try db.freeName(for: wanted, label: Replica.conflictLabel(), in: parent)
                try db.move(item.id, to: parent, named: name)
                try db.becomeConflictCopy(item, named: name, of: wanted)
                tellKernel([.entry(parent: parent, name: name), .contents(parent)])
                let path = try db.shownPath(wanted, in: parent)
                reportConflict(
                    item.inode.number,
                    "conflict: '\(path)' was changed here and on the remote: what was written here is '\(name)'")
            } else {
                let name = try db.freeName(for: wanted, in: parent)
                try db.move(item.id, to: parent, named: name)
                tellKernel([.entry(parent: parent, name: name), .contents(parent)])
            }
        }
        try db.becomeNew(item, exclusion: exclusion, at: now)
        if exclusion == .none { noteSomethingToSend() }
    }

    /// Whether a file whose content was changed here has lost its name to another file of the remote's.
    private func isReplaced(_ item: ItemRecord, named name: String, in parent: InodeNumber) throws -> Bool {
        guard item.inode.kind == .file, item.identifier != nil,
            // A comparison may have found the change just now.
            try db.item(id: item.id)?.changedFields.contains(.contents) == true
        else { return false }
        return try db.item(named: name, in: parent)?.inode.kind == .file
    }

    /// News brought the very item that was made here before the answer did, or the remote knows it as one that is known
    /// here by another name: what that contains comes along.
    func forgetTwin(_ twin: ItemRecord, of item: ItemRecord) throws {
        var pairs = [(twin: twin, item: item)]
        var rows: Set<Int64>?
        var next = 0
        while next < pairs.count {
            let (twin, item) = pairs[next]
            next += 1
            guard twin.inode.kind == .directory, item.inode.kind == .directory else { continue }
            for child in try db.items(in: twin.inode.number) {
                var name = child.name
                if let other = try db.item(named: name, in: item.inode.number) {
                    let kept = try rows ?? rowsWithLocalWork(in: pairs[0].twin, removed(above: pairs[0].twin))
                    rows = kept
                    guard kept.contains(child.id) else { continue }
                    if child.inode.kind == .directory, other.inode.kind == .directory {
                        pairs.append((child, other))
                        continue
                    }
                    name = try db.freeName(for: name, in: item.inode.number)
                }
                try db.move(child.id, to: item.inode.number, named: name)
                tellKernel([.entry(parent: item.inode.number, name: name)])
            }
            tellKernel([.contents(item.inode.number)])
        }
        // What lies below another comes before it.
        for (twin, _) in pairs.reversed() { try forget(twin: twin) }
    }

    private func forget(twin: ItemRecord) throws {
        try db.forgetChanges(of: twin.id)
        guard let clean = try db.item(id: twin.id) else { return }
        // What was changed in it has come along.
        if clean.inode.kind == .directory {
            try discard(clean)
        } else if clean.inode.contentStamp != nil {
            // What was written to it and compared is not marked as changed any more.
            try offerAgain(clean)
        } else {
            try remove(clean)
        }
    }

    /// The most directories above an item that are looked at.
    static let deepest = 4096
}

extension Database {
    /// Whether an item was restored from the trash here, and the remote does not know of that.
    fileprivate func isAnythingRestored() throws -> Bool {
        try one(
            """
            SELECT EXISTS (SELECT 1 FROM item WHERE baseParent = ? AND trashedAt IS NULL
                AND changedFields & \(field: .parentItemIdentifier) <> 0)
            """, [ItemIdentifier.trashContainer.rawValue], { $0[0] as Bool }) ?? false
    }
}
