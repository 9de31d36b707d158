import FileProvider

/// A renaming of one of several hard links by this provider, stored before it is done.
///
/// If the answer is lost, the system knows the old name only, and the file alone does not tell which of its links the item was:
/// the record does, also after a restart.
struct LinkRenaming: Codable, Sendable {
    /// The identifier of the new directory.
    var directory: String
    var name: String

    static let namespace = ProviderStoreNamespace<LinkRenaming>("folder.renamings")

    /// The new places of the stored renamings, by item.
    static func stored(by manager: any FileProviderManager) -> [ItemIdentifier: ChangeLog.Place] {
        do {
            let found = try manager.store.list(in: namespace) { manager.report("\($0)") }
            return Dictionary(
                found.map { key, record in
                    (
                        ItemIdentifier(key.description),
                        ChangeLog.Place(record.name, in: ItemIdentifier(record.directory))
                    )
                }, uniquingKeysWith: { first, _ in first })
        } catch {
            manager.report("\(error)")
            return [:]
        }
    }
}

/// The renamings of links that this provider has done, or is doing.
struct LinkRenamings {
    /// The new places, by item.
    var places: [ItemIdentifier: ChangeLog.Place]
    /// The items that are being renamed: which of two names they have is not known.
    var running: Set<ItemIdentifier> = []
}
