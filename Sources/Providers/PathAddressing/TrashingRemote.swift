import FileProvider

/// A remote that keeps what is deleted for a while, under the identifier that it had: as long as its
/// ``RemoteTraits/hasTrash`` says so, deleting moves into that trash.
///
/// Errors are as with ``PathRemote``; `featureUnsupported` from every call where the trash turns out to be turned off.
package protocol TrashingRemote: PathRemote {
    /// All that lies in the trash, each with the name that it had. A listing that ends early throws.
    func trashedEntries() async throws -> [TrashedEntry]

    /// What a directory in the trash holds.
    ///
    /// - Throws: `noSuchItem`.
    func trashedEntries(in directory: TrashedEntry) async throws -> [TrashedEntry]

    /// What lies below a directory in the trash by these names, or, without any, the entry itself as it is now; nil when
    /// it is not there any more.
    func trashedEntry(_ top: TrashedEntry, below names: [String]) async throws -> TrashedEntry?

    /// Deletes an item only if there is a trash that takes it: what is thrown away too soon after another of its name may
    /// push that out, so this waits. That it did take it a listing has to show.
    ///
    /// - Throws: ``RemoteConditionFailure`` with what is there when the condition does not hold; `noSuchItem`;
    ///   `cannotSynchronize` when the trash is turned off: nothing is deleted then.
    func throwAway(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws

    /// Writes the content of a file in the trash, or a range of it, into a sink. What is there never changes.
    func readTrashed(_ entry: TrashedEntry, range: Range<Int64>?, into sink: any ContentSink) async throws

    /// Brings an item back, to a name that is free. What is broken off, or fails on the way, goes on with
    /// ``resumeRestoring(_:kind:to:)``.
    ///
    /// - Returns: the entry at its new place.
    /// - Throws: ``RemoteConditionFailure`` with what has the name; `noSuchItem` for the new parent, and for what is in the
    ///   trash no more.
    func restore(_ entry: TrashedEntry, to path: RemotePath) async throws -> RemoteEntry

    /// Goes on with bringing back what has left the trash by an earlier attempt of ours, and is not where it was wanted.
    ///
    /// - Parameter identifier: the remote's own.
    /// - Returns: nil when nothing is known of such an attempt, or of where it has come to.
    /// - Throws: as ``restore(_:to:)``.
    func resumeRestoring(_ identifier: String, kind: ItemKind, to path: RemotePath) async throws -> RemoteEntry?

    /// Deletes for good, a directory with all below it. What is gone already is a success.
    func deleteTrashed(_ entry: TrashedEntry) async throws

    /// Deletes for good, as far as possible now, the items in the trash whose names begin with a prefix.
    func clearTrash(ofNamesBeginningWith prefix: String) async
}

/// What a remote says of something in its trash.
package struct TrashedEntry: Hashable, Sendable {
    /// With the name that it had, as far as the remote has kept that, and always with a stable identifier.
    package var entry: RemoteEntry
    /// The names that lead to it in the trash: no other has the same.
    package var place: [String]
    /// Whether it lay in the collection that is mounted, as far as the remote remembers.
    package var wasHere: Bool

    package init(entry: RemoteEntry, place: [String], wasHere: Bool) {
        self.entry = entry
        self.place = place
        self.wasHere = wasHere
    }

    var identifier: ItemIdentifier? {
        entry.stableIdentifier.map { MintedIdentifier.make(entry.kind, remote: $0) }
    }
}
