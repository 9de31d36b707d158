import GRDB

/// A damaged database: the file is truncated, or is not a database.
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
        switch error.resultCode.primaryResultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: self.init(error.message ?? "it cannot be read")
        default: return nil
        }
    }
}
