import Replica

/// Something that can be done for the remote: one call of the provider's, and the transaction that records its result.
package enum SyncOperation: Hashable, Sendable, CustomStringConvertible {
    /// Make an item that was made here.
    case creation(row: Int64)
    /// Change an item as it was changed here.
    case modification(row: Int64)
    /// Give an item a temporary name, because two items wait for each other's names.
    case moveAside(row: Int64)
    /// Delete an item that was removed here.
    case deletion(Int64)
    /// Take in the remote's changes.
    case ingestion

    /// What is sent by it; nil where that is not a whole change.
    var change: PendingMark? {
        switch self {
        case .creation(let row), .modification(let row): .item(row)
        case .deletion(let row): .deletion(row)
        case .moveAside, .ingestion: nil
        }
    }

    package var description: String {
        switch self {
        case .creation(let row): "creation of item \(row)"
        case .modification(let row): "modification of item \(row)"
        case .moveAside(let row): "moving item \(row) aside"
        case .deletion(let id): "deletion \(id)"
        case .ingestion: "ingestion"
        }
    }
}
