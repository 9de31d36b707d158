import FileProvider
import GRDB
import Synchronization
import SystemPackage

/// Which items stay on this machine because of their names, and what a move changes about that.
struct Exclusions: LocalPart {
    let transaction: LocalTransaction

    /// Whether what gets a name in a directory stays on this machine.
    func exclusion(ofNew name: String, in directory: DirectoryRecord) -> Exclusion {
        guard directory.trashRole == .none else { return .none }
        if directory.exclusion != .none { return directory.exclusion }
        return transaction.ignored.isSent(name) ? .none : .name
    }

    /// An item comes under a name, in a directory: whether it is sent may change with that. It is done before the move.
    ///
    /// - Returns: the item as it is to be moved; nil when it is under its new name already.
    /// - Throws: ``LocalObstacle``: EXDEV for a directory that the remote has, and for what holds something that it has;
    ///   the content of a file that the remote has needs to be here.
    func changeExclusion(
        of item: ItemRecord, movedTo directory: DirectoryRecord, named name: String, replacing target: ItemRecord?
    ) throws -> ItemRecord? {
        guard item.trash == nil, item.trashRole == .none, directory.trashRole == .none,
            item.inode.kind.itemKind != nil
        else { return item }
        let old = try db.exclusion(of: item)
        let new = exclusion(ofNew: name, in: directory)
        switch (old, new) {
        case (.none, .none), (.unwanted, .unwanted), (.unwanted, .name), (.name, .name), (.name, .unwanted): return item
        // What the provider did not want under one name it may want under another: it says so again, if not.
        case (.name, .none), (.unwanted, .none):
            try include(item)
            return try db.item(id: item.id)
        case (.none, _):
            if item.identifier == nil, !item.wasSent, !item.isToBeOffered {
                guard try !db.holdsWhatIsKnown(item.inode.number) else { throw LocalObstacle.refused(.improperLink) }
                try db.exclude(item.id, as: new)
                try db.excludeWhatIsNew(below: item.inode.number, as: new)
                return try db.item(id: item.id)
            }
            guard item.inode.kind != .directory else { throw LocalObstacle.refused(.improperLink) }
            guard item.inode.kind != .file || item.inode.content == .materialized else {
                throw LocalObstacle.content(of: item.inode.number)
            }
            // Another name of the same inode, which stays here, and the one that the remote has goes.
            if let target {
                guard target.inode.kind != .directory else { throw LocalObstacle.refused(.isDirectory) }
                try remove(target)
            }
            try db.insert(newItem(name, in: directory.inode.number, item.inode.kind, as: new), of: item.inode.number)
            try db.link(item.inode.number, at: now)
            guard let shared = try db.item(id: item.id) else { return nil }
            try remove(shared)
            return nil
        }
    }

    /// Sends an item that was excluded, and all items below it that were excluded with it, except those with names that are never
    /// sent.
    private func include(_ item: ItemRecord) throws {
        var waiting = [item]
        while let next = waiting.popLast() {
            try db.becomeNew(next, at: now)
            if try !db.extendedAttributeNames(of: next.inode.number).isEmpty {
                try mark(.extendedAttributes, of: next.inode.number)
            }
            guard next.inode.kind == .directory else { continue }
            waiting += try db.items(in: next.inode.number).filter {
                try db.exclusion(of: $0) != .none && $0.inode.kind.itemKind != nil
                    && transaction.ignored.isSent($0.name)
            }
        }
    }

    /// A new name.
    ///
    /// - Parameter exclusion: whether it stays on this machine, whatever it is.
    func newItem(
        _ name: String, in parent: InodeNumber, _ kind: InodeKind, as exclusion: Exclusion, role: TrashRole = .none
    ) throws -> NewItem {
        NewItem(
            kind: kind, name: name, parent: parent,
            capabilities: try exclusion == .unwanted ? .ordinary : newCapabilities(), madeAt: now, role: role,
            exclusion: exclusion)
    }

    /// The capabilities of a new item that is sent to the provider.
    func newCapabilities() throws -> ItemCapabilities {
        try db.hasTrash() ? ItemCapabilities.ordinary.union(.allowsTrashing) : .ordinary
    }
}

extension Database {
    func exclusion(of item: ItemRecord) throws -> Exclusion {
        guard item.isExcluded else { return .none }
        let value = try one("SELECT isExcluded FROM item WHERE id = ?", [item.id], { $0[0] as Int })
        return value.flatMap(Exclusion.init(rawValue:)) ?? .none
    }

    /// Brings what stays on this machine because of its name in line with another list of names.
    fileprivate func apply(_ ignored: IgnoredNames, at now: FileTimestamp) throws {
        try includeWhatWasExcludedByName(at: now)
        guard !ignored.isEmpty else { return }
        // The remote may have what waits to be offered: it answers first (``Offer/isIgnored``).
        let candidates = try all(
            """
            SELECT id, inode, name FROM item WHERE changedFields <> 0 AND isExcluded = \(exclusion: .none)
                AND identifier IS NULL AND reimport <= 0
                AND wasSent = 0 AND trashRole = \(trash: .none) AND trashedAt IS NULL AND baseName IS NULL
            """, [], { (id: $0[0] as Int64, inode: InodeNumber(rawValue: $0[1]), name: $0[2] as String) })
        for candidate in candidates where !ignored.isSent(candidate.name) {
            guard try !holdsWhatIsKnown(candidate.inode) else { continue }
            try exclude(candidate.id, as: .name)
            try excludeWhatIsNew(below: candidate.inode, as: .name)
        }
    }
}

extension Replica {
    /// Names that are not sent from now on. What stayed here because of names that are is sent; what has not been sent
    /// and has one of these names now stays.
    package func ignore(_ names: IgnoredNames) throws {
        try database.write { db in
            ignored.withLock { $0 = names }
            guard try DomainKey.ignoredNames.string(in: db) ?? "" != names.text else { return }
            try db.apply(names, at: FileTimestamp.now)
            try DomainKey.ignoredNames.set(names.text, in: db)
        }
    }

    package var ignoredNames: IgnoredNames { ignored.withLock { $0 } }
}

extension ReplicaDatabase {
    /// Why an item stays on this machine, or that it does not.
    package func exclusion(of item: ItemRecord) throws -> Exclusion {
        try read { db in try db.exclusion(of: item) }
    }
}
