import FileProvider
import Replica

/// A difference between a listing of the remote and the replica.
struct RemoteDifference: Sendable {
    var identifier: ItemIdentifier
    /// The item as it was listed; nil where it was not.
    var remote: FileProviderItem?
    var finding: CheckFinding

    /// Whether an earlier listing has shown the same: else the remote has changed since, and that may be news still.
    fileprivate func isAsBefore(_ earlier: RemoteDifference) -> Bool {
        guard let remote, let before = earlier.remote else { return remote == nil && earlier.remote == nil }
        return remote.kind == before.kind && remote.filename.utf8.elementsEqual(before.filename.utf8)
            && remote.itemVersion.contentVersion == before.itemVersion.contentVersion
    }
}

extension [RemoteDifference] {
    /// The differences that an earlier listing has shown, of items that the remote has not changed since.
    func lasting(since earlier: [RemoteDifference]) -> [RemoteDifference] {
        let before = Dictionary(earlier.map { ($0.identifier, $0) }, uniquingKeysWith: { first, _ in first })
        return filter { difference in before[difference.identifier].map(difference.isAsBefore) ?? false }
    }
}
