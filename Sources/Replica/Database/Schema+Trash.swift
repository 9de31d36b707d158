extension Schema {
    /// The trash: which directories make it up, and where what lies in it was.
    static let trash = """
        ALTER TABLE item ADD COLUMN trashRole INTEGER NOT NULL DEFAULT 0 CHECK (trashRole BETWEEN 0 AND 3);
        ALTER TABLE item ADD COLUMN trashedAt INTEGER;
        ALTER TABLE item ADD COLUMN trashParent TEXT;
        ALTER TABLE item ADD COLUMN trashAncestors TEXT;
        ALTER TABLE item ADD COLUMN trashName TEXT;

        CREATE INDEX trashDirectory ON item (inode) WHERE trashRole <> 0;
        CREATE INDEX trashedItem ON item (id) WHERE trashedAt IS NOT NULL;
        """
}
