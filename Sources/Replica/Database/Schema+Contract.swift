extension Schema {
    /// What the contract of imports and comparisons needs.
    static let contract = """
        ALTER TABLE reimport ADD COLUMN isComplete INTEGER NOT NULL DEFAULT 0;

        DROP INDEX directoryToCompare;
        CREATE INDEX directoryToCompare ON inode (number) WHERE isIncomplete <> 0;
        CREATE INDEX excludedItem ON item (id) WHERE isExcluded = 2;
        """
}
