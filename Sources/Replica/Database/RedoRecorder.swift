import GRDB
import Synchronization

/// Records the statements that change the database while a local change is made (``UncommittedChanges``).
final class RedoRecorder: Sendable {
    private struct State {
        var statements: [RecordedStatement] = []
        var changedRows = 0
    }

    private let state = Mutex(State())

    /// The recorder of the change that is being made on this thread.
    @TaskLocal static var current: RedoRecorder?

    var statements: [RecordedStatement] { state.withLock { $0.statements } }
    var count: Int { state.withLock { $0.statements.count } }
    /// The rows that were changed, triggers included, also by statements that were taken back.
    var changedRows: Int { state.withLock { $0.changedRows } }

    func record(_ sql: String, _ arguments: [DatabaseValue], changedRows: Int) {
        // One that has changed no row changes none when it is run again. Any other statement may change more than rows.
        if changedRows == 0, sql.hasPrefix("UPDATE ") || sql.hasPrefix("DELETE ") { return }
        let statement = RecordedStatement(sql: sql, arguments: arguments)
        state.withLock { state in
            state.statements.append(statement)
            state.changedRows += changedRows
        }
    }

    /// Forgets the statements that were taken back.
    ///
    /// - Parameter count: how many there were before them.
    func takeBack(to count: Int) {
        state.withLock { $0.statements.removeSubrange(count...) }
    }
}
