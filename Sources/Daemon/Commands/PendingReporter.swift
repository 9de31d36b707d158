import Control
import FileProvider
import Replica
import Sync

struct PendingReporter: Sendable {
    let host: DomainHost

    /// Reports all pending changes in parts, oldest first. While the remote is unreachable, this is the error of
    /// every change without an error of its own.
    func list(_ give: ([PendingItem]) async throws -> Void) async throws {
        try host.engine.noteWrittenFiles()
        let resolver = PathResolver(host: host)
        let database = host.replica.database
        // The remote is unreachable, or the domain is read-only.
        let common = host.engine.obstacleToSending.map {
            ItemInformation.Failure(code: $0.code.rawValue, message: $0.message, attempts: 0, nextTry: nil)
        }
        // When what is tried again now was to be tried is over.
        let sending = host.engine.changesUnderWay
        var row: Int64 = 0
        while case let items = try database.pendingItems(after: row, limit: Self.partSize), let last = items.last {
            row = last.item.id
            try await give(
                items.map { item, state in
                    let failure = state.attempts > 0 ? try database.failure(of: item.inode.number) : nil
                    let cause =
                        failure == nil
                        ? try useOnRemote(of: item) ?? PrecedingChange.failed(above: item, resolver)?.failure
                            ?? PrecedingChange.inside(item, resolver)?.failure : nil
                    return PendingItem(
                        path: resolver.path(of: item) ?? item.name, inode: item.inode.number.rawValue,
                        identifier: item.identifier?.rawValue, fields: item.changedFields.names,
                        since: Timestamp.text(state.since),
                        error: failure.map {
                            ItemInformation.Failure(
                                $0, attempts: state.attempts,
                                nextTry: sending.contains(.item(item.id)) ? nil : state.nextTry)
                        } ?? cause ?? common)
                })
        }
        // A reimport is one entry, plus one for each item that failed.
        var waiting = try database.reimports.requests().map { request in
            PendingItem(
                path: resolver.path(of: request.top) ?? "inode \(request.top)", inode: request.top.rawValue,
                identifier: nil, fields: ["reimport"], since: Timestamp.text(request.requestedAt), error: common)
        }
        waiting += try database.reimports.failures(limit: Self.mostFailures).compactMap { number, failure in
            guard let item = try database.item(ofInode: number), item.changedFields.isEmpty else { return nil }
            return PendingItem(
                path: resolver.path(of: number) ?? item.name, inode: number.rawValue, identifier: nil,
                fields: ["reimport"], since: Timestamp.text(failure?.failedAt ?? FileTimestamp.now),
                error: try failure.map {
                    ItemInformation.Failure($0, nextTry: try host.replica.database.nextTry(ofItem: item.id))
                })
        }
        if !waiting.isEmpty { try await give(waiting) }
        let deletions = try database.pendingDeletions()
        for first in stride(from: 0, to: deletions.count, by: Self.partSize) {
            try await give(
                deletions[first..<min(deletions.count, first + Self.partSize)].map { deletion in
                    PendingItem(
                        path: ([resolver.mountpoint] + (try database.path(of: deletion))).joined(separator: "/"),
                        inode: nil, identifier: deletion.identifier.rawValue,
                        fields: ["deletion"], since: Timestamp.text(deletion.since),
                        error: try deletion.code.map {
                            ItemInformation.Failure(
                                code: $0, message: deletion.message ?? "", attempts: deletion.attempts,
                                nextTry: sending.contains(.deletion(deletion.id))
                                    ? nil : deletion.nextTry.map(Timestamp.text))
                        } ?? useOnRemote(of: deletion) ?? common)
                })
        }
    }

    /// The reason why a deletion waits that has not failed; nil if it is only queued.
    private func useOnRemote(of deletion: PendingDeletion) throws -> ItemInformation.Failure? {
        try useOnRemote(of: deletion.identifier, what: "removed file")
    }

    /// The reason why new content waits that has not failed; nil if it is only queued.
    private func useOnRemote(of item: ItemRecord) throws -> ItemInformation.Failure? {
        guard let identifier = item.identifier, item.changedFields.contains(.contents) else { return nil }
        return try useOnRemote(of: identifier, what: "replaced file")
    }

    private func useOnRemote(of identifier: ItemIdentifier, what: String) throws -> ItemInformation.Failure? {
        guard try host.replica.database.isKeptOnRemote(identifier) else { return nil }
        return ItemInformation.Failure(
            code: EvictionRefusal.isOpen.code,
            message: "a process still has the \(what) open, and not all of its content is here", attempts: 0,
            nextTry: nil)
    }

    private static let mostFailures = 1000
    private static let partSize = 1000

    func conflicts() throws -> [ConflictCopy] {
        let resolver = PathResolver(host: host)
        return try host.replica.database.conflictCopies().map { item, original in
            let path = resolver.path(of: item) ?? item.name
            let directory = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[...$0]) } ?? ""
            return ConflictCopy(path: path, original: directory + original)
        }
    }
}

extension Timestamp {
    static func text(_ time: FileTimestamp) -> String {
        text(seconds: time.seconds, nanoseconds: time.nanoseconds)
    }
}
