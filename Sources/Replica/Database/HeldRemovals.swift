import FileProvider
import GRDB

/// The items that the provider has reported as deleted before the anchor that is stored, and that are not removed yet because so many
/// removals are held. The anchor and they are always written together: the provider does not report them again.
extension ReplicaDatabase {
    package func heldRemovals() throws -> Set<ItemIdentifier> { try read { db in try db.heldRemovals() } }
}

extension Database {
    func heldRemovals() throws -> Set<ItemIdentifier> {
        Set(try all("SELECT identifier FROM heldRemoval", [], { ItemIdentifier(rawValue: $0[0] as String) }))
    }

    /// Holds these removals and no others. Items that are not known here have nothing to be removed.
    ///
    /// - Parameter before: those that were held before are not held again if they were forgotten meanwhile.
    func setHeldRemovals(_ identifiers: Set<ItemIdentifier>, heldBefore before: Set<ItemIdentifier>) throws {
        let held = try heldRemovals()
        for identifier in held.subtracting(identifiers) { try forgetHeldRemoval(of: identifier) }
        for identifier in identifiers.subtracting(held).subtracting(before) {
            try run(
                "INSERT INTO heldRemoval (identifier) SELECT ?1 WHERE EXISTS (SELECT 1 FROM item WHERE identifier = ?1)",
                [identifier.rawValue])
        }
    }

    /// The remote has the item.
    func forgetHeldRemoval(of identifier: ItemIdentifier) throws {
        try run("DELETE FROM heldRemoval WHERE identifier = ?", [identifier.rawValue])
    }
}
