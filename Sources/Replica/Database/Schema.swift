import GRDB

/// The database's schema, as a list of migrations that only ever grows. Docs/Schema.md explains it to other readers.
enum Schema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("0001 domain, inodes, items and content") { db in
            try db.execute(sql: first)
        }
        migrator.registerMigration("0002 local changes") { db in
            try db.execute(sql: second)
        }
        migrator.registerMigration("0003 trash") { db in
            try db.execute(sql: trash)
        }
        migrator.registerMigration("0004 policies of the user's, and the use of content") { db in
            try db.execute(sql: third)
        }
        migrator.registerMigration("0005 items by their content version on the remote") { db in
            try db.execute(
                sql: """
                    CREATE INDEX itemByContentVersion ON item (baseContentVersion)
                    WHERE baseContentVersion <> x'' AND identifier IS NOT NULL
                    """)
        }
        migrator.registerMigration("0006 reimport") { db in
            try db.execute(sql: reimport)
        }
        migrator.registerMigration("0007 enumerators") { db in
            try db.execute(sql: members)
        }
        migrator.registerMigration("0009 polling") { db in
            // Which items a listing has confirmed is nothing to be remembered: SeenItems.swift.
            try db.execute(sql: "ALTER TABLE item DROP COLUMN seenInListing")
            try db.execute(sql: "DELETE FROM domain WHERE key = 'listingNumber'")
        }
        migrator.registerMigration("0010 contract") { db in
            try db.execute(sql: contract)
        }
        migrator.registerMigration("0011 webdav") { db in
            try db.execute(sql: "ALTER TABLE inode ADD COLUMN comparedVersion BLOB")
        }
        migrator.registerMigration("0042 collections") { db in
            try db.execute(sql: "ALTER TABLE inode ADD COLUMN changeMark BLOB")
        }
        migrator.registerMigration("0060 inodes without a name") { db in
            try db.execute(sql: nameless)
        }
        migrator.registerMigration("0065 allocation of content files") { db in
            try db.execute(sql: "ALTER TABLE inode ADD COLUMN hasUnusualAllocation INTEGER NOT NULL DEFAULT 0")
        }
        migrator.registerMigration("0070 findings") { db in
            try db.execute(
                sql: """
                    CREATE TABLE finding (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        foundAt INTEGER NOT NULL,
                        text TEXT NOT NULL
                    ) STRICT
                    """)
        }
        return migrator
    }

    private static let first = """
        CREATE TABLE domain (
            key TEXT PRIMARY KEY,
            value BLOB
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE inode (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 7),
            size INTEGER NOT NULL DEFAULT 0 CHECK (size >= 0),
            permissions INTEGER CHECK (permissions BETWEEN 0 AND 4095),
            owner INTEGER,
            "group" INTEGER,
            linkCount INTEGER NOT NULL DEFAULT 1 CHECK (linkCount >= 0),
            modifiedAt INTEGER NOT NULL,
            changedAt INTEGER NOT NULL,
            createdAt INTEGER NOT NULL,
            linkTarget TEXT,
            content INTEGER NOT NULL DEFAULT 0 CHECK (content BETWEEN 0 AND 2),
            contentVersion BLOB NOT NULL DEFAULT x'',
            contentGeneration INTEGER NOT NULL DEFAULT 0,
            localBytes INTEGER NOT NULL DEFAULT 0,
            hasContentFile INTEGER NOT NULL DEFAULT 0,
            isDurable INTEGER NOT NULL DEFAULT 0,
            readAt INTEGER
        ) STRICT;

        CREATE INDEX inodeWithContentFile ON inode (number) WHERE hasContentFile = 1;
        CREATE INDEX inodeWithoutName ON inode (number) WHERE linkCount = 0;
        CREATE INDEX directoryWithListing ON inode (number) WHERE kind = 2 AND content <> 0;

        CREATE TABLE item (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            inode INTEGER NOT NULL REFERENCES inode (number),
            parent INTEGER REFERENCES inode (number),
            name TEXT NOT NULL,
            identifier TEXT,
            capabilities INTEGER NOT NULL,
            policy INTEGER NOT NULL DEFAULT 0 CHECK (policy BETWEEN 0 AND 3),
            baseParent TEXT,
            baseName TEXT,
            baseContentVersion BLOB NOT NULL DEFAULT x'',
            baseMetadataVersion BLOB NOT NULL DEFAULT x'',
            baseSize INTEGER NOT NULL DEFAULT 0,
            baseModifiedAt INTEGER,
            changedFields INTEGER NOT NULL DEFAULT 0,
            seenInListing INTEGER NOT NULL DEFAULT 0
        ) STRICT;

        CREATE UNIQUE INDEX itemByName ON item (parent, name);
        CREATE INDEX itemInParent ON item (parent);
        CREATE INDEX itemByInode ON item (inode);
        CREATE UNIQUE INDEX itemByIdentifier ON item (identifier) WHERE identifier IS NOT NULL;
        CREATE INDEX itemByRemoteName ON item (baseParent, baseName) WHERE baseParent IS NOT NULL;
        CREATE INDEX renamedItem ON item (parent) WHERE name <> baseName;
        CREATE INDEX pendingItem ON item (id) WHERE changedFields <> 0;

        CREATE TABLE contentRange (
            inode INTEGER NOT NULL REFERENCES inode (number) ON DELETE CASCADE,
            start INTEGER NOT NULL,
            "end" INTEGER NOT NULL CHECK ("end" > start),
            PRIMARY KEY (inode, start)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE extendedAttribute (
            inode INTEGER NOT NULL REFERENCES inode (number) ON DELETE CASCADE,
            name TEXT NOT NULL,
            value BLOB NOT NULL,
            PRIMARY KEY (inode, name)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE failure (
            inode INTEGER PRIMARY KEY REFERENCES inode (number) ON DELETE CASCADE,
            code TEXT NOT NULL,
            message TEXT NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 1,
            failedAt INTEGER NOT NULL
        ) STRICT;
        """

    private static let second = """
        ALTER TABLE inode ADD COLUMN accessedAt INTEGER;
        ALTER TABLE inode ADD COLUMN device INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE inode ADD COLUMN subdirectories INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE inode ADD COLUMN contentStamp INTEGER;
        ALTER TABLE inode ADD COLUMN isIncomplete INTEGER NOT NULL DEFAULT 0;

        CREATE INDEX inodeOpenForWriting ON inode (number) WHERE contentStamp IS NOT NULL;
        CREATE INDEX directoryToCompare ON inode (number) WHERE isIncomplete = 1;

        ALTER TABLE item ADD COLUMN template INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE item ADD COLUMN heldFields INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE item ADD COLUMN wasSent INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE item ADD COLUMN isExcluded INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE item ADD COLUMN pendingSince INTEGER;
        ALTER TABLE item ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE item ADD COLUMN nextTry INTEGER;
        ALTER TABLE item ADD COLUMN conflictOf TEXT;
        ALTER TABLE item ADD COLUMN favoriteRank INTEGER;
        ALTER TABLE item ADD COLUMN tagData BLOB;

        DROP INDEX pendingItem;
        CREATE INDEX pendingItem ON item (id) WHERE changedFields <> 0 AND isExcluded = 0;
        CREATE INDEX conflictCopy ON item (id) WHERE conflictOf IS NOT NULL;

        CREATE TABLE deletion (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            identifier TEXT NOT NULL UNIQUE,
            kind INTEGER NOT NULL,
            baseParent TEXT NOT NULL,
            baseName TEXT NOT NULL,
            baseContentVersion BLOB NOT NULL,
            baseMetadataVersion BLOB NOT NULL,
            pendingSince INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            nextTry INTEGER,
            code TEXT,
            message TEXT
        ) STRICT;

        CREATE INDEX deletionByPlace ON deletion (baseParent, baseName);

        CREATE TABLE unanswered (
            item INTEGER,
            deletion INTEGER,
            size INTEGER NOT NULL,
            modifiedAt INTEGER NOT NULL
        ) STRICT;

        CREATE INDEX unansweredItem ON unanswered (item);
        CREATE INDEX unansweredDeletion ON unanswered (deletion);

        UPDATE inode SET subdirectories = (
            SELECT COUNT(*) FROM item JOIN inode AS child ON child.number = item.inode
            WHERE item.parent = inode.number AND child.kind = 2) WHERE kind = 2;

        CREATE TRIGGER directoryAdded AFTER INSERT ON item
        WHEN (SELECT kind FROM inode WHERE number = NEW.inode) = 2 BEGIN
            UPDATE inode SET subdirectories = subdirectories + 1 WHERE number = NEW.parent;
        END;
        CREATE TRIGGER directoryRemoved AFTER DELETE ON item
        WHEN (SELECT kind FROM inode WHERE number = OLD.inode) = 2 BEGIN
            UPDATE inode SET subdirectories = subdirectories - 1 WHERE number = OLD.parent;
        END;
        CREATE TRIGGER directoryMoved AFTER UPDATE OF parent ON item
        WHEN OLD.parent IS NOT NEW.parent AND (SELECT kind FROM inode WHERE number = NEW.inode) = 2 BEGIN
            UPDATE inode SET subdirectories = subdirectories - 1 WHERE number = OLD.parent;
            UPDATE inode SET subdirectories = subdirectories + 1 WHERE number = NEW.parent;
        END;
        """

    private static let third = """
        ALTER TABLE item ADD COLUMN userPolicy INTEGER CHECK (userPolicy BETWEEN 0 AND 3);
        ALTER TABLE inode ADD COLUMN fetchAgain INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE inode ADD COLUMN fetchedFor TEXT;

        CREATE INDEX keptItem ON item (inode) WHERE COALESCE(userPolicy, policy) = 3;
        CREATE INDEX inodeToFetchAgain ON inode (number) WHERE fetchAgain = 1;
        CREATE INDEX contentByUse ON inode (COALESCE(readAt, changedAt), number, localBytes) WHERE hasContentFile = 1;
        """
}
