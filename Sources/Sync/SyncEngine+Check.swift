import FileProvider
import Replica

extension SyncEngine {
    /// Compares what is known here with what the provider says. Nothing is sent meanwhile.
    ///
    /// - Parameters:
    ///   - comparesBytes: fetches every file that is here, too, and compares it byte by byte.
    ///   - isRepairing: takes in what differs; content that is not the remote's is set aside.
    /// - Throws: ``FileProviderError`` when the remote cannot be asked.
    package func compareWithRemote(comparesBytes: Bool, isRepairing: Bool) async throws -> RemoteCheckReport {
        await uploads.pause(true)
        defer { Task { await uploads.pause(false) } }
        return try await RemoteCheck(context, feed: feed)
            .run(comparesBytes: comparesBytes, isRepairing: isRepairing)
    }

    /// Compares the replica with itself, and mends it on request.
    ///
    /// - Throws: ``ReplicaDamage`` for a database that has to be rebuilt.
    package func checkReplica(isRepairing: Bool) async throws -> [CheckFinding] {
        await downloads.settleIdle()
        let (findings, effects) = try await BlockingWork.run { [replica, open] in
            try replica.check(open: open, isRepairing: isRepairing)
        }
        commits.publish(effects)
        return findings
    }
}
