import SystemPackage

/// A replica that is looked at without being opened: nothing is mended.
package struct ReplicaInspection {
    /// The defects of the replica in a folder. It must not be open elsewhere.
    ///
    /// - Throws: ``ReplicaDamage`` for a database that has to be rebuilt; what the disk says.
    package static func findings(in directory: FilePath) throws -> [CheckFinding] {
        guard !RebuiltDatabase.isWaiting(in: directory) else {
            throw ReplicaDamage("a check that was cut short has made a new one, which is not in its place yet")
        }
        try ReplicaDatabase.refuseDamagedFile(in: directory)
        return try ReplicaDatabase.namingDamage {
            let database = try ReplicaDatabase(at: directory.appending(ReplicaDatabase.fileName), readers: 2)
            defer { try? database.close() }
            try database.recoverNewFiles()
            var check = ReplicaCheck(
                database: database, contents: try ContentStore(in: directory), open: NothingOpen(), isRepairing: false)
            try check.run()
            let stored = try ProviderDatabase.findings(
                in: directory, wasMade: database.hasProviderStore, reserve: database.reserve)
            return check.findings + stored
        }
    }
}
