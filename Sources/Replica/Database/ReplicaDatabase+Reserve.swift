import GRDB
import Syscalls
import SystemPackage

extension ReplicaDatabase {
    /// Runs what writes small files beside the database; on a full disk once more, with the reserve's room.
    package func withReserve(_ body: () throws -> Void) throws {
        try reserve.using {
            do {
                try body()
            } catch {
                // Foundation's errors say it in several ways: SQLite's word is the one that is understood here.
                guard available(for: error) else { throw error }
                throw DatabaseError(resultCode: .SQLITE_FULL)
            }
        }
    }

    private func available(for error: any Error) -> Bool {
        if error as? Errno == .noSpace { return true }
        guard let statistics = try? FileSystemStatistics(of: newFileLog.removingLastComponent()) else { return false }
        return statistics.availableBlocks < 16
    }
}
