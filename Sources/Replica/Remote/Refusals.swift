import FileProvider
import GRDB

/// Items that the provider refuses: they stay on this machine.
package struct Refusals: RemotePart {
    let transaction: RemoteTransaction
    private var removal: ItemRemoval { ItemRemoval(transaction: transaction) }

    /// The provider does not want a new item: it stays here, and so does what is new in it. Of the items that were
    /// offered again, those whose content is here stay: the content of the others cannot be fetched any more.
    package func exclude(_ sent: SentChange, _ error: FileProviderError) throws {
        guard let item = try db.item(id: sent.row) else { return }
        if item.isToBeOffered {
            try willChangeNames()
            guard try keepOffered(item, as: .unwanted) else { return }
        } else if item.identifier != nil || item.placeholder != sent.item.itemIdentifier {
            // It has got another name since it was sent: that may be wanted.
            return
        }
        try db.exclude(sent.row, as: .unwanted)
        try db.excludeWhatIsNew(below: sent.inode, as: .unwanted)
        try db.recordFailure(error, of: sent.inode, at: now)
    }

    /// The remote does not have an item of an import whose name is never sent, or has another one in its place: it stays on this
    /// machine, and so does what is in it.
    package func keepIgnored(_ sent: SentChange) throws {
        guard let item = try db.item(id: sent.row), item.reimport == sent.offer?.round,
            // Under another name, or with an item that the remote had, it is offered again.
            item.name.utf8.elementsEqual(sent.item.filename.utf8),
            try !db.holdsWhatIsKnown(item.inode.number, countsImported: false)
        else { return }
        try willChangeNames()
        guard try keepOffered(item, as: .name) else { return }
        try db.excludeWhatIsNew(below: item.inode.number, as: .name)
        try db.forgetFailure(of: item.inode.number)
    }

    /// - Returns: whether anything of the item stays.
    private func keepOffered(_ top: ItemRecord, as exclusion: Exclusion) throws -> Bool {
        var offered = [top]
        var next = 0
        while next < offered.count {
            let item = offered[next]
            next += 1
            guard item.inode.kind == .directory else { continue }
            offered += try db.items(in: item.inode.number).filter(\.isToBeOffered)
        }
        // The deepest items come first: a directory stays if an item in it stays.
        for item in offered.reversed() {
            let isHere: Bool
            switch item.inode.kind {
            case .file: isHere = item.inode.content == .materialized
            case .directory:
                isHere = try item.inode.content == .materialized || !db.items(in: item.inode.number).isEmpty
            case .symbolicLink, .fifo, .characterDevice, .blockDevice, .socket: isHere = true
            }
            guard isHere else {
                report(
                    "lost: the remote does not want '\(item.ownName)', and its content was not on this machine")
                try removal.remove(item)
                continue
            }
            try removal.becomeNew(item, exclusion: exclusion)
            guard item.inode.kind == .directory else { continue }
            // It has no listing on the remote.
            try db.makeListed(item.inode.number, comparison: .none)
        }
        return try db.item(id: top.id) != nil
    }

    /// Why an item is about to be this machine's own.
    package func noteRefusal(_ error: FileProviderError, of sent: SentChange) throws {
        try db.recordFailure(error, of: sent.inode, at: now)
    }

    /// The provider does not want an item any more that the remote has: with all below it, it becomes this machine's own,
    /// and the remote has to delete what it has of that.
    ///
    /// - Returns: false when something of it is not here, and nothing was done.
    package func withdraw(_ sent: SentChange, _ error: FileProviderError) throws -> Bool {
        guard let item = try db.item(id: sent.row), item.identifier == sent.identifier else { return true }
        // The name or the place that it has got since may be wanted.
        if try hasMoved(item, since: sent) { return true }
        guard try !db.lacksContent(item) else { return false }
        try willChangeNames()
        try makeOwn(item)
        var directories = item.inode.kind == .directory ? [item.inode.number] : []
        while let directory = directories.popLast() {
            for child in try db.items(in: directory) where !child.isExcluded {
                if child.inode.kind == .directory { directories.append(child.inode.number) }
                try makeOwn(child)
            }
        }
        try db.recordFailure(error, of: item.inode.number, at: now)
        return true
    }

    /// Whether an item was moved again after a change of its place was sent.
    private func hasMoved(_ item: ItemRecord, since sent: SentChange) throws -> Bool {
        if sent.isMovedAside { return false }
        if sent.fields.contains(.filename), !item.ownName.utf8.elementsEqual(sent.item.filename.utf8) { return true }
        guard sent.fields.contains(.parentItemIdentifier), let parent = item.parent else { return false }
        return try db.identifier(ofInode: parent) != sent.item.parentItemIdentifier
    }

    /// Makes an item this machine's own. Precondition: all of its content is here.
    private func makeOwn(_ item: ItemRecord) throws {
        guard item.parent != nil else { return }
        try db.queueDeletion(of: item, at: now)
        try db.keepUnanswered(of: item, at: now)
        var own = item
        own.id = try db.moveToNewRow(item)
        try removal.becomeNew(own, exclusion: .unwanted)
    }
}

extension ReplicaDatabase {
    /// Whether all of an item, and of what is below it, is here.
    package func isHere(_ item: ItemRecord) throws -> Bool { try read { db in try !db.lacksContent(item) } }
}

extension Database {
    /// Whether something of an item, or of what is below it, is not here.
    fileprivate func lacksContent(_ item: ItemRecord) throws -> Bool {
        guard item.inode.kind == .directory else {
            return item.inode.kind == .file && item.inode.content != .materialized
        }
        return try one(
            """
            WITH RECURSIVE below (inode) AS (
                SELECT ?1
                UNION ALL
                SELECT item.inode FROM item JOIN below ON item.parent = below.inode
                    WHERE item.isExcluded = \(exclusion: .none)
            )
            SELECT EXISTS (SELECT 1 FROM below JOIN inode ON inode.number = below.inode
                WHERE inode.kind IN (\(kind: .file), \(kind: .directory))
                    AND inode.content <> \(content: .materialized))
            """, [item.inode.number.rawValue], { $0[0] as Bool }) ?? true
    }
}
