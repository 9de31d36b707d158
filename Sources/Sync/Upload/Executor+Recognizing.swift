import FileProvider
import Replica

/// Recognizes on the remote what was sent before, without an answer.
extension Executor {
    /// Whether the remote has what was sent of an item before, and what was changed here since was changed on top of that, or
    /// removed, or renamed. By the date alone: nothing is fetched.
    func hasOwnDate(_ remote: FileProviderItem, _ sent: SentChange) throws -> Bool {
        try unanswered(remote, sent).contains { $0.matches(remote) }
    }

    /// As ``hasOwnDate(_:_:)``, and by the content where the remote has given it another date.
    func isOwn(_ remote: FileProviderItem, _ sent: SentChange) async throws -> Bool {
        let changes = try unanswered(remote, sent)
        if changes.contains(where: { $0.matches(remote) }) { return true }
        return try await hasContent(remote, ofAny: changes)
    }

    /// Whether an item of the remote's is what was sent before it was removed here. A file with the same content and another date is
    /// another client's, where the remote keeps dates.
    func isOwn(_ remote: FileProviderItem, _ deletion: PendingDeletion) async throws -> Bool {
        let changes = try replica.database.unanswered(ofDeletion: deletion.id)
        if changes.contains(where: { $0.matches(remote) }) { return true }
        let keepsDates = calls.provider.features.keepsModificationDates
        return try await hasContent(
            remote,
            ofAny: changes.filter {
                keepsDates
                    ? $0.matchesTruncatedDate(of: remote)
                    : $0.size > 0 && $0.canHaveArrived(as: remote, before: deletion.since)
            })
    }

    private func unanswered(_ remote: FileProviderItem, _ sent: SentChange) throws -> [UnansweredChange] {
        guard remote.kind == sent.item.kind else { return [] }
        let changes = try replica.database.unanswered(ofItem: sent.row)
        guard sent.identifier == nil else { return changes }
        return try changes + replica.database.unanswered(ofLeft: sent.item.itemIdentifier)
    }

    private func hasContent(_ remote: FileProviderItem, ofAny changes: [UnansweredChange]) async throws -> Bool {
        let digests = Set(changes.filter { $0.hasComparableContent(remote) }.compactMap(\.digest))
        guard !digests.isEmpty else { return false }
        do {
            return try await ContentComparison(context: context).hasDigest(in: digests, remote)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            // Another client has removed it.
            return false
        }
    }
}
