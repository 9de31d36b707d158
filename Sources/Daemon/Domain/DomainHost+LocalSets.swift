import FileProvider
import Replica
import Sync

extension DomainHost {
    /// The items whose content is here: files that are here whole and directories whose listing is. Items come with the
    /// identifiers, names and places that they have here.
    package func enumeratorForMaterializedItems() -> any FileProviderEnumerator {
        LocalSetEnumerator(set: .materialized, database: replica.database) { [engine] in
            try engine.noteWrittenFiles()
        }
    }

    /// The items that the remote has not got as they are here, new ones with their temporary identifiers and those that
    /// are to be deleted included; all of them, whatever their number.
    package func enumeratorForPendingItems() -> any FileProviderEnumerator {
        LocalSetEnumerator(set: .pending, database: replica.database) { [engine] in
            try engine.noteWrittenFiles()
        }
    }
}
