import FileNames
import FileProvider
import Foundation
import GRDB

/// Applies what the provider reports to the mount: one batch of a listing or of changes, inside one transaction.
///
/// The base side of an item takes everything; the local side takes what was not changed here. A process that has
/// a file open keeps the version that it opened, in an inode without a name, so that no reader ever sees two versions
/// mixed; the item gets another inode (Docs/decisions/0006-open-versions.md).
package struct Ingestion {
    let db: Database
    let open: any OpenInodes
    let now: FileTimestamp
    /// Where the trash's own files have their bytes.
    let contents: ContentStore?
    /// Items that are still to come in this batch: they make room for those that come before them.
    var upcoming: Set<ItemIdentifier> = []
    /// The listing that this batch belongs to: items of its directory that it has not confirmed make room.
    var listing: Int64?
    /// Whether that listing is of a directory whose names are not here yet.
    var isFirstListing = false
    var effects = ReplicaEffects()
    private let turn: WriteTurn?
    private let ordering: RemoteOrdering?
    /// Whether names that are not UTF-8 are the provider's to give.
    private let hasByteNames: Bool

    /// - Parameters:
    ///   - turn: the writer's; nil where names may be changed as it is.
    ///   - ordering: told of the acknowledgements that are recorded.
    ///   - hasByteNames: as the provider's features say.
    init(
        db: Database, open: any OpenInodes, now: FileTimestamp, contents: ContentStore? = nil, turn: WriteTurn? = nil,
        ordering: RemoteOrdering? = nil, hasByteNames: Bool = true
    ) {
        self.hasByteNames = hasByteNames
        self.turn = turn
        self.ordering = ordering
        self.db = db
        self.open = open
        self.now = now
        self.contents = contents
    }

    /// What follows changes names or directories: files that are being made come before it.
    func willChangeNames() throws { try turn?.claim() }

    /// The answer to a change of an item is recorded: observations that were requested before do not undo it.
    func noteAnswer(of identifier: ItemIdentifier) { ordering?.acknowledge(identifier) }

    /// Whether an acknowledgement of an item is newer than an observation.
    package func isStale(_ identifier: ItemIdentifier, _ observation: Observation) -> Bool {
        ordering?.isStale(identifier, observation) ?? false
    }

    /// Brings in an item in its parent directory, or in none when the parent is not known here.
    package mutating func place(_ item: FileProviderItem, in parent: InodeNumber?) throws {
        if let defect = item.defect {
            effects.defects.append(Self.notShown(item, "\(defect)"))
            return
        }
        guard hasByteNames || FileNameText.isUTF8(item.filename) else {
            let name = item.filename.debugDescription
            effects.defects.append("\(name) (\(item.itemIdentifier)): its name has scalars that stand for bytes here")
            return
        }
        if let known = try db.item(item.itemIdentifier) {
            if known.inode.kind == InodeKind(item.kind) {
                try update(known, with: item, parent: parent)
            } else {
                try remove(known)
                try insert(item, parent: parent)
            }
        } else {
            try insert(item, parent: parent)
        }
    }

    /// Takes in what the provider says about the root itself: it has neither parent nor name.
    package mutating func placeRoot(_ item: FileProviderItem) throws {
        guard item.kind == .directory, let known = try db.item(.rootContainer) else { return }
        try updateAttributes(of: known, with: item)
    }

    /// Removes an item and all below it. Content that a process has open stays until it is closed.
    package mutating func remove(_ item: ItemRecord) throws {
        guard item.inode.number != .root else { return }
        if try keepLocalWork(in: item) { return }
        try removeInformation(of: item)
        var doomed = [item]
        var nameless: [InodeNumber] = []
        while let next = doomed.popLast() {
            if next.inode.kind == .directory { doomed += try db.items(in: next.inode.number) }
            if next.isExcluded { try setAside(next) }
            try db.deleteItem(next.id)
            try db.unlink(next.inode.number, at: now)
            if next.inode.linkCount <= 1 { nameless.append(next.inode.number) }
        }
        // A directory stays until its children no longer name it.
        for number in nameless {
            try db.forgetFailure(of: number)
            if !open.keepsNameless(number) { try drop(number) }
        }
        if let parent = item.parent {
            effects.invalidations += [
                .deletion(parent: parent, child: item.inode.number, name: item.name),
                .entry(parent: parent, name: item.name), .contents(parent),
            ]
            try restoreNames()
        }
    }

    /// The content of a file that only this machine has outlives the directory that the remote has removed.
    private mutating func setAside(_ item: ItemRecord) throws {
        guard item.trashRole == .none, item.inode.kind == .file, item.inode.linkCount <= 1,
            try db.hasContentFile(item.inode.number),
            let place = try contents?.keep(item.inode.number, stamp: now.nanosecondsSince1970)
        else { return }
        effects.defects.append(
            "loss prevented: the remote has removed the directory of '\(item.name)', which was on this machine alone: its "
                + "content has been moved to '\(place)'"
        )
    }

    /// Removes an inode that has no name left and that no process has open.
    mutating func drop(_ number: InodeNumber) throws {
        let hadFile = try db.one(
            "SELECT hasContentFile FROM inode WHERE number = ? AND linkCount = 0", [number.rawValue], { $0[0] as Bool })
        guard let hadFile else { return }
        if hadFile {
            effects.obsoleteContents.append(try db.forgetContent(of: number))
        } else {
            try db.deleteNameless(number)
        }
    }

    /// The last handle of a file was closed, or the kernel has forgotten an inode that has no name: what waited for that is
    /// applied now.
    package mutating func settle(_ number: InodeNumber) throws {
        guard !open.isOpen(number), let inode = try db.inode(number) else { return }
        if inode.linkCount == 0 {
            if !open.keepsNameless(number) { try drop(number) }
            return
        }
        guard inode.kind == .file, inode.linkCount == 1, let item = try db.item(ofInode: number),
            item.identifier != nil, !item.changedFields.contains(.contents),
            item.base.version.contentVersion != inode.contentVersion
        else { return }
        try takeContentVersion(of: item)
    }

    /// Items that name each other as parents in a circle have no place.
    mutating func reportCycle(_ items: [FileProviderItem]) {
        for item in items {
            effects.defects.append(Self.notShown(item, "its parents form a circle"))
        }
    }

    /// The message about an item of the provider that cannot be shown.
    private static func notShown(_ item: FileProviderItem, _ reason: String) -> String {
        "the remote has an item that cannot be shown: '\(item.filename)' (\(item.itemIdentifier)): \(reason)"
    }

    // MARK: - Private

    private mutating func insert(_ item: FileProviderItem, parent: InodeNumber?) throws {
        let isForTrash = try isForTrash(item)
        let parent = isForTrash ? try trashDirectory(for: nil) : parent
        guard let parent, try !isSettled(item, in: parent) else { return }
        let number = try db.insertInode(of: item, at: now)
        let name =
            isForTrash
            ? try freeTrashName(for: item.filename, in: parent)
            : try claim(item.filename, in: parent, for: nil, identifier: item.itemIdentifier)
        let row = try db.insert(item, of: number, in: parent, named: name)
        if let listing { try db.noteSeen(row, in: listing) }
        if isForTrash { try noteTrashed(newItem: row, as: item, named: name, in: parent) }
        try setExtendedAttributes(item.extendedAttributes, of: number)
        // While a directory is listed for the first time, the kernel gets no negative dentries of it.
        if !isFirstListing { effects.invalidations.append(.entry(parent: parent, name: name)) }
        // A listing that is under way is not cached yet; one that is here is.
        if listing == nil { effects.invalidations.append(.contents(parent)) }
    }

    mutating func update(_ known: ItemRecord, with item: FileProviderItem, parent: InodeNumber?) throws {
        guard known.inode.number != .root else { return try updateAttributes(of: known, with: item) }
        let keepsPlace = known.localFields.contains(.parentItemIdentifier)
        let isForTrash = try !keepsPlace && isForTrash(item)
        let newParent = keepsPlace ? known.parent : isForTrash ? try trashDirectory(for: known) : parent
        let isMoved = newParent != known.parent
        var name = known.name
        let wanted = known.localFields.contains(.filename) && !known.isHidden ? known.name : item.filename
        // In the trash the local name is not the remote's.
        if let newParent, isMoved || known.trash == nil {
            // The name shown is asked for again each time: a decorated one goes back as soon as it can.
            if isMoved || !known.name.utf8.elementsEqual(wanted.utf8) {
                name =
                    isForTrash
                    ? try freeTrashName(for: wanted, in: newParent)
                    : try claim(wanted, in: newParent, for: known, identifier: item.itemIdentifier)
            }
        } else if newParent == nil {
            name = Displacement.name(forItem: known.id)
        }
        if isMoved || !name.utf8.elementsEqual(known.name.utf8) {
            if let newParent, try db.isBelow(newParent, known.inode.number), try !undoMoves(from: newParent, to: known)
            {
                effects.defects.append(Self.notShown(item, "its parent lies below itself"))
                return
            }
            if let newParent, isForTrash, known.trash == nil {
                try noteTrashed(known, named: name, in: newParent)
            } else if known.trash != nil, isMoved, !isForTrash {
                try noteRestored(known)
            }
            try db.move(known.id, to: newParent, named: name)
            if let oldParent = known.parent {
                effects.invalidations += [.entry(parent: oldParent, name: known.name), .contents(oldParent)]
            }
            if let newParent {
                effects.invalidations += [.entry(parent: newParent, name: name), .contents(newParent)]
            }
        }
        try db.setBasePlace(of: known.id, to: item)
        if let listing { try db.noteSeen(known.id, in: listing) }
        if !known.changedFields.isDisjoint(with: [.filename, .parentItemIdentifier]) {
            try db.noteWhereItIs(known.id, at: now)
        }
        try updateAttributes(of: known, with: item)
        if isMoved || !name.utf8.elementsEqual(known.name.utf8) { try restoreNames() }
    }

    /// Everything but parent and name. What is written here is still based on what it was written over: that content's
    /// version, size and date stay together.
    private mutating func updateAttributes(of known: ItemRecord, with item: FileProviderItem) throws {
        try db.setBase(of: known.id, to: item)
        var inode = known.inode
        let changed = known.localFields
        if let permissions = item.permissions, !changed.contains(.permissions) {
            inode.permissions = permissions & 0o7777
        }
        if !changed.contains(.ownership) {
            if let owner = item.owner { inode.owner = owner }
            if let group = item.group { inode.group = group }
        }
        if let created = item.creationDate, !changed.contains(.creationDate) { inode.createdAt = created }
        // Of several items that share an inode, each has a version of its own.
        let present = inode.linkCount > 1 ? known.base.version.contentVersion : inode.contentVersion
        let isNewContent =
            inode.kind == .file && item.itemVersion.contentVersion != present && !changed.contains(.contents)
        if let modified = item.contentModificationDate, !changed.contains(.contentModificationDate), !isNewContent {
            inode.modifiedAt = modified
        }
        if inode.kind == .directory, let size = item.documentSize,
            (0...FileProviderItem.maximumDocumentSize).contains(size)
        {
            inode.size = size
        }
        if inode.kind == .symbolicLink, let target = item.symlinkTargetPath {
            let known = try db.linkTarget(of: inode.number)
            if known?.utf8.elementsEqual(target.utf8) != true {
                try db.setLinkTarget(of: inode.number, to: target)
                inode.size = Int64(FileNameText.byteCount(of: target))
                effects.invalidations.append(.contents(inode.number))
            }
        }
        if inode != known.inode {
            // Its creation time and the size of a directory on the remote are not changes of the item.
            var shown = inode
            shown.createdAt = known.inode.createdAt
            if shown.kind == .directory { shown.size = known.inode.size }
            if shown != known.inode { inode.changedAt = now }
            try db.writeAttributes(of: inode)
            effects.invalidations.append(.attributes(inode.number))
        }
        if !changed.contains(.extendedAttributes) {
            try setExtendedAttributes(item.extendedAttributes, of: inode.number)
        }
        guard isNewContent else { return }
        if inode.linkCount > 1 {
            try giveOwnInode(to: known)
        } else if let current = try db.item(id: known.id) {
            try showNewest(of: current)
        }
    }

    /// The mount shows the content version that the provider gave last from now on. A process that has read from the file
    /// keeps the version that it opened; an open file that no process has read from follows the new version.
    mutating func showNewest(of item: ItemRecord) throws {
        if open.isOpenAndUsed(item.inode.number) {
            // A write that was not recorded yet makes this a conflict, which is settled when the change is sent.
            if try !isWritten(item) { try supersede(item) }
        } else if item.inode.contentStamp == nil {
            try takeContentVersion(of: item)
        }
    }

    /// Whether the content of an item was changed here, also by what the kernel wrote by itself just now.
    private mutating func isWritten(_ item: ItemRecord) throws -> Bool {
        guard item.inode.contentStamp != nil, let contents else { return item.changedFields.contains(.contents) }
        var changes = LocalChanges(db: db, open: open, contents: contents, now: now)
        try changes.compareContent(item.inode.number)
        effects.append(changes.effects)
        return try db.item(id: item.id)?.changedFields.contains(.contents) ?? false
    }

    /// Gives an item another inode for the version that the remote has now; the present one loses its name and stays for
    /// those who have it open.
    private mutating func supersede(_ item: ItemRecord) throws {
        try willChangeNames()
        let old = item.inode.number
        let isFetchedAgain = try isFetchedAgain(item)
        let number = try db.copyInode(
            of: item, size: item.base.size, version: item.base.version.contentVersion, at: now)
        if item.changedFields.contains(.contentModificationDate) {
            try db.setModificationTime(of: number, to: item.inode.modifiedAt)
        }
        try db.setFetchedAgain(isFetchedAgain, number)
        try db.setFetchedAgain(false, old)
        try db.setInode(of: item.id, to: number)
        try db.unlink(old, at: now)
        try db.forgetFailure(of: old)
        try db.noteSuperseded(item)
        _ = open.keepsNameless(old)
        effects.invalidations.append(.attributes(old))
        if let parent = item.parent {
            effects.invalidations += [.entry(parent: parent, name: item.name), .contents(parent)]
        }
    }

    /// Whether the content of an item is to be fetched as soon as the remote has changed it, because it was here.
    private func isFetchedAgain(_ item: ItemRecord) throws -> Bool {
        let hadContent = try item.inode.content == .materialized && db.hasContentFile(item.inode.number)
        return try (hadContent || db.isFetchedAgain(item.inode.number)) && item.base.size > 0
            && db.effectivePolicy(of: item) == .lazy
    }

    /// The content version that the provider gave last becomes the one that the mount shows.
    mutating func takeContentVersion(of item: ItemRecord) throws {
        var inode = item.inode
        let hadContent = try inode.content != .dataless && db.hasContentFile(inode.number)
        let isFetchedAgain = try isFetchedAgain(item)
        let obsolete = try db.forgetContent(of: inode.number)
        if hadContent { effects.obsoleteContents.append(obsolete) }
        inode.size = item.base.size
        inode.contentVersion = item.base.version.contentVersion
        if !item.changedFields.contains(.contentModificationDate), let modified = item.base.modifiedAt {
            inode.modifiedAt = modified
        }
        inode.changedAt = now
        try db.writeAttributes(of: inode)
        try db.showContentVersion(inode.contentVersion, of: inode.number, isFetchedAgain: isFetchedAgain)
        effects.invalidations.append(.contents(inode.number))
    }

    private mutating func setExtendedAttributes(_ attributes: [String: [UInt8]]?, of number: InodeNumber) throws {
        guard let attributes else { return }
        let old = try db.extendedAttributes(of: number)
        guard attributes != old else { return }
        try db.run("DELETE FROM extendedAttribute WHERE inode = ?", [number.rawValue])
        // The kernel keeps ACLs with the attributes of an inode.
        if attributes[AccessControlList.accessKey] != old[AccessControlList.accessKey] {
            effects.invalidations.append(.attributes(number))
        }
        for (name, value) in attributes { try db.setExtendedAttribute(name, of: number, to: value) }
    }
}
