import FileProvider
import Replica
import Sync

extension DomainHost {
    /// An enumerator of the materialized items: complete files and listed directories, with their local identifiers,
    /// names and parents.
    package func enumeratorForMaterializedItems() -> any FileProviderEnumerator {
        LocalSetEnumerator(set: .materialized, database: replica.database, engine: engine)
    }

    /// An enumerator of all items with pending changes, including new items with temporary identifiers and deleted
    /// items.
    package func enumeratorForPendingItems() -> any FileProviderEnumerator {
        LocalSetEnumerator(set: .pending, database: replica.database, engine: engine)
    }
}
