/// What a provider's remote can be asked about changes, without listing anything.
package enum ChangeReports: Hashable, Sendable {
    /// Nothing: who wants to know compares.
    case none
    /// Whether something came, went or changed in one directory. Where `areComplete` is false, directories that came or
    /// went may be left out.
    case ofDirectories(areComplete: Bool)
    /// In which directories of the whole domain something came, went or changed.
    case ofAll
}

/// What is known of a moment from which changes can be asked for: opaque bytes, made by the provider, kept by the system.
package typealias ChangeMark = [UInt8]

/// What has changed since a mark.
package struct ChangeReport: Sendable, Hashable {
    /// Of the directories that were named those in which something has changed; nil where that cannot be told, and all of
    /// them are to be compared.
    package var changed: Set<ItemIdentifier>?
    /// To be kept once those have been compared; nil where the next look has to be at everything, too.
    package var mark: ChangeMark?

    package init(changed: Set<ItemIdentifier>?, mark: ChangeMark?) {
        self.changed = changed
        self.mark = mark
    }
}

/// A provider whose remote can be asked what has changed. A report is never taken for the change itself: what it names is
/// compared, and so nothing is believed gone that a listing would not show to be.
package protocol ChangeReporter: Sendable {
    /// What can be asked for, as far as it is known by now; asks the remote when it is not.
    func changeReports() async throws -> ChangeReports

    /// - Parameters:
    ///   - mark: nil, or one that is refused, gives a new one, from before the answer.
    ///   - directories: those whose listing is here.
    func changes(since mark: ChangeMark?, among directories: [ItemIdentifier]) async throws -> ChangeReport

    /// Likewise in one directory.
    func changes(since mark: ChangeMark?, in directory: ItemIdentifier) async throws -> ChangeReport
}
