import Control
import FileProvider
import Replica
import Sync

/// Describes what the remote has not got yet to the control socket.
struct PendingReporter: Sendable {
    let host: DomainHost

    /// Everything that waits, part by part, what was made first comes first. While the remote cannot be asked, that is the
    /// reason for all that have none of their own.
    func list(_ give: ([PendingItem]) async throws -> Void) async throws {
        try host.engine.noteWrittenFiles()
        let resolver = PathResolver(host: host)
        let database = host.replica.database
        // While the remote is away, or the domain is read-only, everything waits for the same reason.
        let common = host.engine.obstacleToSending.map {
            ItemInformation.Failure(code: $0.code.rawValue, message: $0.message, attempts: 0, nextTry: nil)
        }
        var row: Int64 = 0
        while case let items = try database.pendingItems(after: row, limit: Self.partSize), let last = items.last {
            row = last.item.id
            try await give(
                items.map { item, state in
                    let failure = state.attempts > 0 ? try database.failure(of: item.inode.number) : nil
                    return PendingItem(
                        path: resolver.path(of: item) ?? item.name, inode: item.inode.number.rawValue,
                        identifier: item.identifier?.rawValue, fields: item.changedFields.names,
                        since: Timestamp.text(state.since),
                        error: failure.map {
                            ItemInformation.Failure(
                                code: $0.code, message: $0.message, attempts: state.attempts,
                                nextTry: state.nextTry.map(Timestamp.text))
                        } ?? common)
                })
        }
        // What waits to be offered again is one line as long as it waits only for its turn.
        var waiting = try database.reimports().map { request in
            PendingItem(
                path: resolver.path(of: request.top) ?? "inode \(request.top)", inode: request.top.rawValue,
                identifier: nil, fields: ["reimport"], since: Timestamp.text(request.requestedAt), error: common)
        }
        waiting += try database.reimportFailures(limit: Self.mostFailures).compactMap { number, failure in
            guard let item = try database.item(ofInode: number), item.changedFields.isEmpty else { return nil }
            return PendingItem(
                path: resolver.path(of: number) ?? item.name, inode: number.rawValue, identifier: nil,
                fields: ["reimport"], since: Timestamp.text(failure?.failedAt ?? Replica.now),
                error: failure.map {
                    ItemInformation.Failure(code: $0.code, message: $0.message, attempts: $0.attempts, nextTry: nil)
                })
        }
        if !waiting.isEmpty { try await give(waiting) }
        let deletions = try database.pendingDeletions()
        for first in stride(from: 0, to: deletions.count, by: Self.partSize) {
            try await give(
                deletions[first..<min(deletions.count, first + Self.partSize)].map { deletion in
                    PendingItem(
                        path: try path(of: deletion), inode: nil, identifier: deletion.identifier.rawValue,
                        fields: ["deletion"], since: Timestamp.text(deletion.since),
                        error: try deletion.code.map {
                            ItemInformation.Failure(
                                code: $0, message: deletion.message ?? "", attempts: deletion.attempts,
                                nextTry: deletion.nextTry.map(Timestamp.text))
                        } ?? useOnRemote(of: deletion) ?? common)
                })
        }
    }

    /// Why a deletion waits that nothing has refused; nil when it only waits for its turn.
    private func useOnRemote(of deletion: PendingDeletion) throws -> ItemInformation.Failure? {
        guard try host.replica.database.isKeptOnRemote(deletion.identifier) else { return nil }
        return ItemInformation.Failure(
            code: EvictionRefusal.isOpen.code,
            message: "a process still has the removed file open, and not all of its content is here", attempts: 0,
            nextTry: nil)
    }

    private static let mostFailures = 1000
    private static let partSize = 1000

    /// The conflict copies that still exist.
    func conflicts() throws -> [ConflictCopy] {
        let resolver = PathResolver(host: host)
        return try host.replica.database.conflictCopies().map { item, original in
            let path = resolver.path(of: item) ?? item.name
            let directory = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[...$0]) } ?? ""
            return ConflictCopy(path: path, original: directory + original)
        }
    }

    private func path(of deletion: PendingDeletion) throws -> String {
        let resolver = PathResolver(host: host)
        guard let parent = try host.replica.database.item(deletion.parent), let path = resolver.path(of: parent) else {
            return deletion.name
        }
        return path + "/" + deletion.name
    }
}

extension Timestamp {
    static func text(_ time: FileTimestamp) -> String {
        text(seconds: time.seconds, nanoseconds: time.nanoseconds)
    }
}
