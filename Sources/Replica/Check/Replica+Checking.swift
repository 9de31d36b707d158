extension Replica {
    /// Compares the database with itself and with the content files, while all goes on.
    ///
    /// - Parameter isRepairing: mends what is found. Nothing is removed: what does not fit is moved to the recovered
    ///   folder.
    /// - Returns: what was found, and what is left to tell the kernel.
    /// - Throws: ``ReplicaDamage`` for a database that has to be rebuilt; what the disk says.
    package func check(
        open: any OpenInodes, isRepairing: Bool
    ) throws -> (findings: [CheckFinding], effects: ReplicaEffects) {
        let (findings, effects) = try ReplicaDatabase.namingDamage {
            var check = ReplicaCheck(database: database, contents: contents, open: open, isRepairing: isRepairing)
            try check.run()
            return (check.findings, check.effects)
        }
        // Apart: an error of the provider's store is none of the replica's.
        return (findings + (try providerStore.check(isRepairing: isRepairing)), effects)
    }
}
