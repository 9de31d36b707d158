import FileProvider

/// Local changes as the provider is to be told of them.
extension Replica {
    /// An item with those of its changes that are to be sent now, as it is at this moment; nil when it is gone, or
    /// nothing of them is left.
    ///
    /// - Parameters:
    ///   - fields: what of its changes may be sent.
    ///   - name: another name than its own, to make room.
    ///   - directory: another directory than the one that it is to be in, with the other name.
    package func prepare(
        _ row: Int64, fields: ItemFields, as name: String? = nil, in directory: ItemIdentifier? = nil
    ) throws -> SentChange? {
        let preparedAt = FileTimestamp.now
        return try database.read { db in
            guard let item = try db.item(id: row), !item.isExcluded else { return nil }
            var sending = item.changedFields.intersection(fields)
            if name != nil { sending = sending.intersection(.parentItemIdentifier).union(.filename) }
            guard !sending.isEmpty else { return nil }
            // By its date and size it is recognized when the answer is lost.
            if sending.contains(.contents) { sending.insert(.contentModificationDate) }
            // A mode that the remote could not set on what it had may come with new content.
            if sending.contains(.contents) { sending.formUnion(item.heldFields.intersection(.permissions)) }
            let parent: ItemIdentifier
            if item.inode.number == .root {
                parent = .rootContainer
            } else if let directory {
                parent = directory
            } else {
                guard let identifier = try item.parent.flatMap({ try db.identifier(ofInode: $0) }) else {
                    return nil
                }
                parent = identifier
            }
            guard var described = try db.describe(item) else { return nil }
            if item.identifier == nil {
                // It may be one that the remote had, and it has what was not changed since.
                if described.extendedAttributes?.isEmpty == false { sending.insert(.extendedAttributes) }
                if described.favoriteRank != nil { sending.insert(.favoriteRank) }
                if described.tagData != nil { sending.insert(.tagData) }
            }
            described.parentItemIdentifier = parent
            // Without its place it is described where the remote has it: a provider may look for it there after a lost answer.
            if item.identifier != nil, item.trash == nil {
                let unsent = item.changedFields.subtracting(sending)
                if unsent.contains(.filename), let known = item.base.name { described.filename = known }
                if unsent.contains(.parentItemIdentifier), let known = item.base.parent {
                    described.parentItemIdentifier = known
                }
            }
            // The user's policy is not sent to the remote.
            described.contentPolicy = .inherited
            if let name { described.filename = name }
            return SentChange(
                row: row, inode: item.inode.number, identifier: item.identifier, item: described,
                base: item.base.version,
                fields: sending, contentStamp: nil, isReplay: item.wasSent, preparedAt: preparedAt,
                isMovedAside: name != nil)
        }
    }
}
