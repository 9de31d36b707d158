import GRDB

/// A damaged database: the file is truncated, is not a database, or lies where the disk cannot be read.
package struct ReplicaDamage: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// The damage that an error tells of; nil for any other error.
    package init?(_ error: any Error) {
        if let damage = error as? ReplicaDamage {
            self = damage
            return
        }
        guard let error = error as? DatabaseError else { return nil }
        switch error.extendedResultCode {
        // SQLite's unixRead() gives the last one for EIO: a rebuild copies what can be read.
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_IOERR_CORRUPTFS: self.init(error.message ?? "it cannot be read")
        default: return nil
        }
    }
}
