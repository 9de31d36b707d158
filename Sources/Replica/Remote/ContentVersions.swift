import FileProvider

/// Which version of its content an inode has: the one that a process opened, or the newest of the remote's.
package struct ContentVersions: RemotePart {
    let transaction: RemoteTransaction

    /// Removes an inode that has no name left and that no process has open.
    func drop(_ number: InodeNumber) throws {
        guard let inode = try db.inode(number), inode.linkCount == 0 else { return }
        try deleteNameless(inode)
    }

    /// Makes a file dataless again whose content was begun and never came, unless a process has it open.
    func abandon(_ number: InodeNumber, generation: Int64) throws -> Bool {
        guard let inode = try db.inode(number), inode.contentGeneration == generation, inode.content == .partial,
            inode.localBytes == 0, !open.isOpen(number)
        else { return false }
        try withdrawContent(of: inode)
        return true
    }

    /// Makes a file dataless whose local content is not the remote's, and moves its content file to the recovered folder.
    ///
    /// - Parameters:
    ///   - generation: that of the content that was compared.
    ///   - reason: why it cannot be used, in words for the user.
    /// - Returns: false when a process has it open, or has written to it since: then it stays.
    package func distrust(_ number: InodeNumber, generation: Int64, because reason: String) throws -> Bool {
        guard !open.isOpen(number), let item = try db.item(ofInode: number),
            item.inode.contentGeneration == generation, item.inode.content == .materialized,
            item.inode.contentStamp == nil, !item.changedFields.contains(.contents)
        else { return false }
        _ = try transaction.withdrawals?.setAside(number, stamp: now.nanosecondsSince1970)
        try db.dropContent(of: number)
        tellKernel([.contents(number)])
        report(
            "the local content of '\(item.name)' cannot be used (\(reason)): it has been moved to 'recovered' and is "
                + "fetched again")
        return true
    }

    /// Sets content aside that the remote is about to replace or remove, if something was written to it before a power cut and no row
    /// says so. The comparison of all content files may not have reached it yet.
    func setAsideUnrecorded(_ number: InodeNumber) throws {
        guard let lastSync = transaction.lastSync, contents.hasFile(number), try !db.isContentUnsent(number) else {
            return
        }
        let verification = ContentVerification(
            contents: contents, open: open, withdrawals: transaction.withdrawals)
        for finding in try verification.verify(number, after: lastSync, in: db) { report(finding) }
    }

    /// The last handle of a file was closed, or the kernel has forgotten an inode that has no name: what waited for that is
    /// applied now.
    package func settle(_ number: InodeNumber) throws {
        guard !open.isOpen(number), let inode = try db.inode(number) else { return }
        if inode.linkCount == 0 {
            if !open.keepsNameless(number) { try deleteNameless(inode) }
            return
        }
        guard inode.kind == .file, inode.linkCount == 1, let item = try db.item(ofInode: number),
            item.identifier != nil, !item.changedFields.contains(.contents),
            item.base.version.contentVersion != inode.contentVersion
        else { return }
        try takeContentVersion(of: item)
    }

    /// Content that may have been written on the remote without another version was compared with it.
    ///
    /// - Parameters:
    ///   - generation: that of the content that was compared.
    ///   - base: the metadata version that the item was based on before that. One that it has got since is newer, and stays.
    ///   - remote: what the remote had before that.
    ///   - isDoubtedAgain: whether it may have been written once more meanwhile, and is to be compared again.
    /// - Returns: false when the content that was compared is not here any more.
    package func settleDoubt(
        of number: InodeNumber, generation: Int64, since base: [UInt8], with remote: FileProviderItem, isEqual: Bool,
        isDoubtedAgain: Bool
    ) throws -> Bool {
        guard let item = try db.item(remote.itemIdentifier), item.inode.number == number,
            item.base.version.contentVersion == remote.itemVersion.contentVersion, try !isWritten(item)
        else { return true }
        guard item.inode.contentGeneration == generation, item.inode.content == .materialized else { return false }
        if item.base.version.metadataVersion == base {
            let version = remote.itemVersion
            try db.setBaseMetadataVersion(
                of: item.id, to: isDoubtedAgain ? version.doubtedMetadataVersion : version.metadataVersion)
        }
        if !isEqual { try takeNewContent(of: item) }
        return true
    }

    /// Content that may have been written on the remote without another version is not here any more: what is fetched from now on is the
    /// remote's.
    ///
    /// - Parameters:
    ///   - base: the metadata version that the item was based on before the remote was asked.
    ///   - remote: what the remote has.
    /// - Returns: false when content is here by now.
    package func settleDoubtWithoutContent(since base: [UInt8], with remote: FileProviderItem) throws -> Bool {
        guard let item = try db.item(remote.itemIdentifier), !item.changedFields.contains(.contents),
            item.base.version.contentVersion == remote.itemVersion.contentVersion,
            item.base.version.metadataVersion == base
        else { return true }
        guard item.inode.content == .dataless, item.inode.contentStamp == nil else { return false }
        try db.setBaseMetadataVersion(of: item.id, to: remote.itemVersion.metadataVersion)
        return true
    }

    /// The remote has other content of an item.
    func takeNewContent(of item: ItemRecord) throws {
        if item.inode.linkCount > 1 {
            try giveOwnInode(to: item)
        } else if let current = try db.item(id: item.id) {
            // A reader that waits sees by the version alone that the content is another one.
            let repeats = current.inode.contentVersion == current.base.version.contentVersion
            if repeats, open.isOpen(current.inode.number) {
                if try !isWritten(current) { try supersede(current) }
            } else {
                try showNewest(of: current)
            }
        }
    }

    /// The mount shows the content version that the provider gave last from now on. A process that has read from the file
    /// keeps the version that it opened; an open file that no process has read from follows the new version.
    func showNewest(of item: ItemRecord) throws {
        if open.isOpenAndUsed(item.inode.number) {
            // A write that was not recorded yet makes this a conflict, which is settled when the change is sent.
            if try !isWritten(item) { try supersede(item) }
        } else if item.inode.contentStamp == nil {
            try takeContentVersion(of: item)
        }
    }

    /// Whether the content of an item was changed here, also by what the kernel wrote by itself just now.
    func isWritten(_ item: ItemRecord) throws -> Bool {
        guard item.inode.contentStamp != nil else { return item.changedFields.contains(.contents) }
        let local = LocalTransaction(db: db, open: open, contents: contents, now: now)
        try ContentChanges(transaction: local).compareContent(item.inode.number)
        transaction.effects.append(local.effects)
        return try db.item(id: item.id)?.changedFields.contains(.contents) ?? false
    }

    /// Gives an item another inode for the version that the remote has now; the present one loses its name and stays for
    /// those who have it open.
    private func supersede(_ item: ItemRecord) throws {
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
        try db.noteSuperseded(item, by: item.id)
        _ = open.keepsNameless(old)
        tellKernel([.attributes(old)])
        if let parent = item.parent {
            tellKernel([.departure(of: item, from: parent), .contents(parent)])
        }
    }

    /// Whether the content of an item is to be fetched as soon as the remote has changed it, because it was here.
    func isFetchedAgain(_ item: ItemRecord) throws -> Bool {
        let hadContent = try item.inode.content == .materialized && db.hasContentFile(item.inode.number)
        return try (hadContent || db.isFetchedAgain(item.inode.number)) && item.base.size > 0
            && db.effectivePolicy(of: item) == .lazy
    }

    /// The content version that the provider gave last becomes the one that the mount shows.
    func takeContentVersion(of item: ItemRecord) throws {
        var inode = item.inode
        let hadContent = try inode.content != .dataless && db.hasContentFile(inode.number)
        let isFetchedAgain = try isFetchedAgain(item)
        if hadContent {
            try setAsideUnrecorded(inode.number)
            try withdrawContent(of: inode)
        } else {
            try db.forgetContent(of: inode.number)
        }
        inode.size = item.base.size
        inode.contentVersion = item.base.version.contentVersion
        if !item.changedFields.contains(.contentModificationDate), let modified = item.base.modifiedAt {
            inode.modifiedAt = modified
        }
        inode.changedAt = now
        try db.writeAttributes(of: inode)
        try db.showContentVersion(inode.contentVersion, of: inode.number, isFetchedAgain: isFetchedAgain)
        tellKernel([.contents(inode.number)])
    }

    /// The remote gave one of several names of an inode other content: it is a file of its own from now on.
    func giveOwnInode(to item: ItemRecord) throws {
        try willChangeNames()
        guard let current = try db.item(id: item.id) else { return }
        let number = try db.copyInode(
            of: current, size: current.base.size, version: current.base.version.contentVersion, at: now)
        try db.setInode(of: item.id, to: number)
        try db.unlink(item.inode.number, at: now)
        tellKernel([.attributes(item.inode.number)])
        if let parent = current.parent {
            tellKernel([.departure(of: current, from: parent), .contents(parent)])
        }
    }
}
