import FileProvider
import GRDB

/// Why an item stays materialized. Each has its own errno and its own words.
package enum EvictionRefusal: Error, Hashable, Sendable {
    /// A local change is not on the remote yet.
    case unsyncedEdits
    /// It is kept downloaded.
    case nonEvictable
    /// Somebody has it open.
    case isOpen
    /// Several names share its content.
    case isHardLinked
    /// Something below it refused.
    case nonEvictableChildren
    /// It is not known here.
    case noSuchItem
}

/// Making items dataless: one item, one transaction.
extension Replica {
    /// Makes a file dataless. One that is dataless already, or has nothing to drop, is a success.
    ///
    /// - Returns: how many bytes were given back, and what is left to tell the kernel.
    /// - Throws: ``EvictionRefusal``.
    package func evictFile(_ number: InodeNumber, open: any OpenInodes) async throws -> (Int64, ReplicaEffects) {
        let (freed, effects) = try await database.write { db -> (Int64, ReplicaEffects) in
            guard let item = try db.item(ofInode: number) else { throw EvictionRefusal.noSuchItem }
            var effects = ReplicaEffects()
            if item.changedFields.contains(.contents) || item.identifier == nil { throw EvictionRefusal.unsyncedEdits }
            if try db.effectivePolicy(of: item) == .keepDownloaded { throw EvictionRefusal.nonEvictable }
            if item.trash != nil { throw EvictionRefusal.nonEvictable }
            if open.isOpen(number) { throw EvictionRefusal.isOpen }
            guard item.inode.kind == .file, item.inode.content != .dataless, try db.hasContentFile(number) else {
                try db.run("UPDATE inode SET fetchAgain = 0 WHERE number = ? AND fetchAgain = 1", [number.rawValue])
                return (0, effects)
            }
            if item.inode.contentStamp != nil { throw EvictionRefusal.unsyncedEdits }
            if item.inode.linkCount > 1 { throw EvictionRefusal.isHardLinked }
            effects.obsoleteContents.append(try db.forgetContent(of: number))
            effects.invalidations.append(.contents(number))
            return (item.inode.localBytes, effects)
        }
        try await removeObsoleteContents(effects)
        return (freed, effects)
    }

    /// Drops a directory's listing once everything below it is dataless. Its items are remembered, so that they are the
    /// same inodes when it is listed again.
    ///
    /// - Throws: ``EvictionRefusal``.
    package func evictListing(of number: InodeNumber) async throws -> ReplicaEffects {
        try await database.write { db in
            guard let item = try db.item(ofInode: number), item.inode.kind == .directory else {
                throw EvictionRefusal.noSuchItem
            }
            var effects = ReplicaEffects()
            if try db.effectivePolicy(of: item) == .keepDownloaded { throw EvictionRefusal.nonEvictable }
            guard item.inode.content == .materialized else { return effects }
            // What the remote does not have it cannot list.
            if item.identifier == nil { throw EvictionRefusal.unsyncedEdits }
            let children = try db.items(in: number)
            for child in children {
                let isLocal =
                    child.inode.content != .dataless && (child.inode.kind == .directory || child.inode.localBytes > 0)
                let isKept = child.policy == .keepDownloaded
                if isLocal || isKept || !child.changedFields.isEmpty || child.identifier == nil {
                    throw EvictionRefusal.nonEvictableChildren
                }
            }
            try db.run("UPDATE inode SET content = 0 WHERE number = ?", [number.rawValue])
            effects.invalidations += children.map { .entry(parent: number, name: $0.name) }
            effects.invalidations.append(.contents(number))
            return effects
        }
    }
}
