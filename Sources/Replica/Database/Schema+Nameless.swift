extension Schema {
    /// Inodes that have no name and are used, where more is known of them than that. Rows go with the inode, which goes when
    /// nobody uses it, or at the next start.
    static let nameless = """
        CREATE TABLE nameless (
            inode INTEGER PRIMARY KEY REFERENCES inode (number) ON DELETE CASCADE,
            reason INTEGER NOT NULL CHECK (reason BETWEEN 1 AND 3),
            identifier TEXT,
            wasOpen INTEGER NOT NULL DEFAULT 0,
            item INTEGER,
            parent INTEGER,
            name TEXT
        ) STRICT;

        CREATE INDEX namelessByIdentifier ON nameless (identifier) WHERE identifier IS NOT NULL;
        """
}
