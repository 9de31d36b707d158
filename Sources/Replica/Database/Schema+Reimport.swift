extension Schema {
    /// Items whose identifiers were given up, and that are offered to the provider again.
    static let reimport = """
        ALTER TABLE item ADD COLUMN reimport INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE deletion ADD COLUMN isToBeFound INTEGER NOT NULL DEFAULT 0;

        CREATE INDEX itemToOffer ON item (id) WHERE reimport > 0;
        CREATE INDEX childToOffer ON item (parent, attempts) WHERE reimport > 0;
        CREATE INDEX movedItem ON item (baseParent) WHERE changedFields & 4 <> 0 AND baseParent IS NOT NULL;

        CREATE TABLE reimport (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            inode INTEGER NOT NULL,
            requestedAt INTEGER NOT NULL,
            total INTEGER NOT NULL DEFAULT 0
        ) STRICT;

        CREATE TABLE reimportDirectory (
            inode INTEGER PRIMARY KEY,
            after INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID;
        """
}
