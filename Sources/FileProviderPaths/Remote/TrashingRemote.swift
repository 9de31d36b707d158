import FileProvider

/// A remote that keeps deleted items for a while, under their identifiers: as long as its
/// ``RemoteTraits/hasTrash`` says so, deleting moves into that trash.
///
/// Errors are as with ``PathRemote``; `featureUnsupported` from every call where the trash turns out to be turned off.
package protocol TrashingRemote: PathRemote {
    /// All entries of the trash, each with the name that it had. An incomplete listing throws.
    func trashedEntries() async throws -> [TrashedEntry]

    /// The entries of a directory in the trash.
    ///
    /// - Throws: `noSuchItem`.
    func trashedEntries(in directory: TrashedEntry) async throws -> [TrashedEntry]

    /// The entry below a directory in the trash at these names, or, without names, the entry itself as it is now; nil when
    /// it is not there any more.
    func trashedEntry(_ top: TrashedEntry, below names: [String]) async throws -> TrashedEntry?

    /// Deletes an item only if the trash keeps it. An item that is trashed too soon after another one of its name may
    /// replace that, so this waits. Only a listing shows whether the trash has kept it.
    ///
    /// - Throws: ``RemoteConditionFailure`` with the present entry when the condition does not hold; `noSuchItem`;
    ///   `cannotSynchronize` when the trash is turned off: nothing is deleted then.
    func throwAway(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws

    /// Writes the content of a file in the trash, or a range of it, into a sink. It never changes.
    func readTrashed(_ entry: TrashedEntry, range: Range<Int64>?, into sink: any ContentSink) async throws

    /// Restores an item, to a name that is free. After an interruption or a failure
    /// ``resumeRestoring(_:kind:to:)`` continues.
    ///
    /// - Returns: the entry at its new place.
    /// - Throws: ``RemoteConditionFailure`` with the entry that has the name; `noSuchItem` for the new parent, and for an item
    ///   that is not in the trash any more.
    func restore(_ entry: TrashedEntry, to path: RemotePath) async throws -> RemoteEntry

    /// Continues to restore an item that an earlier attempt has taken out of the trash, and that is not at its new place.
    ///
    /// - Parameter identifier: the remote's own.
    /// - Returns: nil when no such attempt is known, or where it has moved the item.
    /// - Throws: as ``restore(_:to:)``.
    func resumeRestoring(_ identifier: String, kind: ItemKind, to path: RemotePath) async throws -> RemoteEntry?

    /// Deletes for good, a directory with all below it. Succeeds when it was removed already.
    func deleteTrashed(_ entry: TrashedEntry) async throws

    /// Deletes for good, as far as possible now, the items in the trash whose names begin with a prefix.
    func clearTrash(ofNamesBeginningWith prefix: String) async
}

package struct TrashedEntry: Hashable, Sendable {
    /// With the name that it had, as far as the remote has kept it, and always with a stable identifier.
    package var entry: RemoteEntry
    /// Its path in the trash, which no other entry has.
    package var place: [String]
    /// Whether it was in the collection that is mounted, as far as the remote remembers.
    package var wasHere: Bool
    /// When it came into the trash; nil where the remote does not say.
    package var trashedAt: FileTimestamp?

    package init(entry: RemoteEntry, place: [String], wasHere: Bool, trashedAt: FileTimestamp? = nil) {
        self.entry = entry
        self.place = place
        self.wasHere = wasHere
        self.trashedAt = trashedAt
    }
}
