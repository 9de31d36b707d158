import FileProvider
import Replica
import Sync
import SystemPackage

/// Enumerates one of the two local sets and its changes. Anchors belong to the replica: they stay valid with it, and
/// expire after too many changes.
struct LocalSetEnumerator: FileProviderEnumerator {
    let set: LocalSet
    let database: ReplicaDatabase
    /// Adds the files that are being written to the set; nil before the domain is mounted.
    let engine: SyncEngine?

    private static let largestPage = 1000

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        try known {
            if page == .initial {
                try database.localSets.followSets()
                try engine?.noteWrittenFiles()
            }
            guard let place = page == .initial ? 0 : Int64(String(decoding: page.rawValue, as: UTF8.self)) else {
                throw FileProviderError(.pageExpired, "no page begins there")
            }
            let members = try database.localSets.members(
                of: set, from: place, limit: min(max(1, suggestedPageSize), Self.largestPage))
            return ItemPage(
                items: members.items, nextPage: members.next.map { FileProviderPage(rawValue: Array("\($0)".utf8)) })
        }
    }

    func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch {
        try known {
            try engine?.noteWrittenFiles()
            guard let moment = try moment(of: anchor),
                let changes = try database.localSets.changes(
                    of: set, after: moment, limit: min(max(1, suggestedBatchSize), Self.largestPage))
            else { throw FileProviderError(.syncAnchorExpired) }
            return ChangeBatch(
                updated: changes.updated, deleted: changes.gone, anchor: try self.anchor(at: changes.sequence),
                moreComing: changes.hasMore)
        }
    }

    func currentSyncAnchor() async throws -> SyncAnchor? {
        try known {
            try database.localSets.followSets()
            try engine?.noteWrittenFiles()
            return try anchor(at: try database.localSets.lastChange(of: set))
        }
    }

    private func anchor(at moment: Int64) throws -> SyncAnchor {
        SyncAnchor("\(try name())\(moment)")
    }

    private func moment(of anchor: SyncAnchor) throws -> Int64? {
        let name = Array(try name().utf8)
        guard anchor.rawValue.starts(with: name) else { return nil }
        return Int64(String(decoding: anchor.rawValue.dropFirst(name.count), as: UTF8.self)).flatMap {
            $0 >= 0 ? $0 : nil
        }
    }

    /// The prefix of the anchors of this replica and this set.
    private func name() throws -> String {
        "\(set.rawValue).\(try database.value(of: .identity) ?? "")."
    }

    private func known<Value>(_ query: () throws -> Value) throws -> Value {
        do {
            return try query()
        } catch let error as FileProviderError {
            throw error
        } catch {
            throw FileProviderError.posix(.ioError, "the replica cannot be read: \(error)")
        }
    }
}
