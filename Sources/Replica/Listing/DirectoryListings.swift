import FileProvider

/// Listings of directories, page by page, and the comparison of listed directories with the remote.
package struct DirectoryListings: RemotePart {
    let transaction: RemoteTransaction
    private var placement: Placement { Placement(transaction: transaction) }

    /// One page of a directory's listing. Items of which something newer is known are left alone.
    ///
    /// - Parameters:
    ///   - inFlight: items that are left alone because an operation on them or their names has not been answered. The directory is noted
    ///     to be compared.
    ///   - areLookedUp: whether the items were looked up because they were doubtful.
    ///   - observation: the listing.
    /// - Returns: the items that are doubtful, and left out: by newer news another has the name. Nil when the listing was evicted
    ///   meanwhile, and the page was dropped.
    package func page(
        of directory: InodeNumber, listing number: Int64, items: [FileProviderItem],
        inFlight: Set<ItemIdentifier> = [], areLookedUp: Bool = false, observed observation: Observation
    ) throws -> [FileProviderItem]? {
        transaction.listing = number
        // Taking in a page adds none where there is none.
        transaction.mayBeDeletedOrSent = try db.hasDeletionsOrUnanswered()
        let content = try db.inode(directory)?.content
        guard content != .dataless else { return nil }
        let isCompared = content == .materialized
        transaction.isFirstListing = !isCompared
        let highest = try highestItem(in: directory)
        let hasNews = hasNews(since: observation)
        var doubtful: [FileProviderItem] = []
        if !inFlight.isEmpty { try db.noteIncompleteIfListed(directory) }
        for item in items {
            if inFlight.contains(item.itemIdentifier) {
                // It is there: what no page has shown is removed.
                if let known = try db.item(item.itemIdentifier) { try db.noteSeen(known.id, in: number) }
                continue
            }
            if hasNews {
                if isStale(item.itemIdentifier, observation, isListing: true) { continue }
                if let holder = try holder(of: item.filename, in: directory), holder != item.itemIdentifier,
                    isStale(holder, observation, isListing: true)
                {
                    guard areLookedUp else {
                        doubtful.append(item)
                        continue
                    }
                    transaction.newer.insert(holder)
                }
            }
            try placement.place(item, in: directory)
        }
        // The kernel may have kept the names of a directory that was listed before.
        if isCompared, try highestItem(in: directory) != highest { tellKernel([.contents(directory)]) }
        return doubtful
    }

    private func holder(of name: String, in directory: InodeNumber) throws -> ItemIdentifier? {
        try db.one(
            "SELECT identifier FROM item WHERE parent = ? AND name = ? AND identifier IS NOT NULL",
            [directory.rawValue, name], { ItemIdentifier(rawValue: $0[0]) })
    }

    /// The end of a listing: what is gone goes, the directory is materialized, unless its listing was evicted while it was
    /// only compared.
    ///
    /// - Parameter isClear: false where a lookup of what was missing has failed: that counts as one more failure in a row.
    package func finishListing(of directory: InodeNumber, gone: [ItemRecord], isClear: Bool = true) throws {
        let identifier = try directory == .root ? .rootContainer : db.item(ofInode: directory)?.identifier
        for item in gone {
            guard let current = try db.item(id: item.id), current.parent == directory,
                current.identifier == item.identifier
            else { continue }
            // The remote has it elsewhere until its move is sent.
            if current.changedFields.contains(.parentItemIdentifier), current.base.parent != identifier { continue }
            try ItemRemoval(transaction: transaction).remove(current)
        }
        try db.finishListing(of: directory)
        if isClear { try db.forgetReadingFailure(of: directory) }
    }

    /// The end of a listing that is no comparison, in one transaction with its last page: removes what it has not
    /// confirmed.
    package func finishListing(
        of directory: InodeNumber, listing number: Int64, observed observation: Observation
    ) throws {
        let gone = try db.unseenItems(in: directory, listing: number)
            .filter { item in item.identifier.map { !isStale($0, observation, isListing: true) } ?? false }
        try finishListing(of: directory, gone: gone)
        try db.endSeeing(in: number)
    }

    /// The largest row number of a directory's items: its listing has come so far.
    package func highestItem(in directory: InodeNumber) throws -> Int64 {
        try db.one("SELECT MAX(id) FROM item WHERE parent = ?", [directory.rawValue], { $0[0] as Int64? ?? 0 }) ?? 0
    }

    // MARK: - Comparing with the remote

    /// A directory, and for a mark of all of them each one, is what it was at this mark, or newer.
    package func noteMark(_ mark: ChangeMark?, of number: InodeNumber) throws {
        try db.setChangeMark(of: number, to: mark)
    }

    /// All below a directory is what it was when the directory had this version, or newer.
    package func noteCompared(_ number: InodeNumber, at version: [UInt8]) throws {
        try db.setComparedVersion(of: number, to: version)
    }

    /// A directory has to be compared with the remote.
    package func noteIncomplete(_ number: InodeNumber) throws {
        try db.noteIncompleteIfListed(number)
    }

    /// Each directory whose listing is under way has to be compared once it is listed: its listing may have been read before the point
    /// from which changes are asked for.
    package func noteListingsUnderWay() throws {
        try db.noteListingsUnderWay()
    }

    /// A directory that has to be compared is being compared now: what is noted from here on is for the next time.
    package func beginComparing(_ number: InodeNumber) throws {
        try db.beginComparing(number)
    }

    package func finishComparing(_ number: InodeNumber) throws {
        try db.finishComparing(number)
    }
}
