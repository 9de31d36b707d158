import GRDB

/// Invalidations that were committed and that the kernel may not have received. Each is written in the transaction that made the
/// kernel's caches stale, and deleted once it was sent: a daemon that takes over the mount sends those that are left.
extension Database {
    /// Records what a transaction has left for the kernel to forget. The last step of the transaction.
    func recordInvalidations(of effects: ReplicaEffects) throws -> ReplicaEffects {
        guard !effects.invalidations.isEmpty else { return effects }
        for invalidation in effects.invalidations {
            let row = InvalidationRow(invalidation)
            try run(
                "INSERT INTO invalidation (kind, inode, child, name) VALUES (?, ?, ?, ?)",
                [row.kind.rawValue, row.inode, row.child, row.name])
        }
        var effects = effects
        effects.lastInvalidation = lastInsertedRowID
        return effects
    }
}

extension ReplicaDatabase {
    /// The invalidations that were recorded and not deleted yet, in order, and the last of them as ``ReplicaEffects`` has it.
    package func unsentInvalidations() throws -> ReplicaEffects {
        try read { db in
            var effects = ReplicaEffects()
            try db.query("SELECT id, kind, inode, child, name FROM invalidation ORDER BY id", []) { columns in
                effects.lastInvalidation = columns[0]
                let row = InvalidationRow(
                    kind: InvalidationRow.Kind(rawValue: columns[1]), inode: columns[2], child: columns[3],
                    name: columns[4])
                if let invalidation = row?.invalidation { effects.invalidations.append(invalidation) }
                return true
            }
            return effects
        }
    }

    /// The kernel has received the invalidations up to one.
    ///
    /// - Parameter last: ``ReplicaEffects/lastInvalidation``.
    package func forgetInvalidations(upTo last: Int64) async throws {
        try await write { db in try db.run("DELETE FROM invalidation WHERE id <= ?", [last]) }
    }

    /// Deletes all records: a new mount has cached nothing.
    package func forgetInvalidations() throws {
        try write { db in try db.run("DELETE FROM invalidation", []) }
    }
}

private struct InvalidationRow {
    enum Kind: Int64 {
        case entry = 1
        case deletion = 2
        case attributes = 3
        case contents = 4
        case departedFile = 5
    }

    var kind: Kind
    var inode: Int64
    var child: Int64?
    var name: String?

    init?(kind: Kind?, inode: Int64, child: Int64?, name: String?) {
        guard let kind else { return nil }
        (self.kind, self.inode, self.child, self.name) = (kind, inode, child, name)
    }

    init(_ invalidation: KernelInvalidation) {
        switch invalidation {
        case .entry(let parent, let name): (kind, inode, self.name) = (.entry, parent.rawValue, name)
        case .departedFile(let parent, let name):
            (kind, inode, self.name) = (.departedFile, parent.rawValue, name)
        case .deletion(let parent, let child, let name):
            (kind, inode, self.child, self.name) = (.deletion, parent.rawValue, child.rawValue, name)
        case .attributes(let number): (kind, inode) = (.attributes, number.rawValue)
        case .contents(let number): (kind, inode) = (.contents, number.rawValue)
        }
    }

    var invalidation: KernelInvalidation? {
        let number = InodeNumber(rawValue: inode)
        switch kind {
        case .entry: return name.map { .entry(parent: number, name: $0) }
        case .departedFile: return name.map { .departedFile(parent: number, name: $0) }
        case .deletion:
            guard let child, let name else { return nil }
            return .deletion(parent: number, child: InodeNumber(rawValue: child), name: name)
        case .attributes: return .attributes(number)
        case .contents: return .contents(number)
        }
    }
}
