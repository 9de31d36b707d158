/// What a remote can report about changes without a listing.
package enum ChangeReports: Hashable, Sendable {
    /// Nothing: directories must be compared.
    case none
    /// Whether a directory has changed. If `areComplete` is false, created or deleted directories may be missing.
    case ofDirectories(areComplete: Bool)
    /// The changed directories of the whole domain.
    case ofAll
}

/// A point from which changes are reported: opaque bytes of the provider.
package typealias ChangeMark = [UInt8]

/// The changes since a mark.
package struct ChangeReport: Sendable, Hashable {
    /// The changed ones of the requested directories; nil if this is unknown and all must be compared.
    package var changed: Set<ItemIdentifier>?
    /// The next mark, valid once the changed directories have been compared; nil if the next comparison must cover
    /// everything.
    package var mark: ChangeMark?

    package init(changed: Set<ItemIdentifier>?, mark: ChangeMark?) {
        self.changed = changed
        self.mark = mark
    }
}

/// A provider whose remote can report changes. The reported directories are compared; a report alone never deletes an
/// item.
package protocol ChangeReporter: Sendable {
    /// The supported reports. Asks the remote if they are not known yet.
    func changeReports() async throws -> ChangeReports

    /// - Parameters:
    ///   - mark: nil or a rejected mark returns a new mark, from before the answer.
    ///   - directories: the listed directories.
    func changes(since mark: ChangeMark?, among directories: [ItemIdentifier]) async throws -> ChangeReport

    /// Returns the changes in one directory.
    func changes(since mark: ChangeMark?, in directory: ItemIdentifier) async throws -> ChangeReport
}
