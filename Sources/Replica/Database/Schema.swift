import GRDB

/// The database's schema: a baseline and the migrations after it. Docs/Schema.md explains the tables.
///
/// A migration that was released is never edited. Its text holds the numbers of states as they were when it was
/// written; all other statements name them (SQLNames.swift). The tests keep a stored database of the baseline and run every later
/// migration on it.
enum Schema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("0001 baseline") { db in
            for part in [domain, inodes, items, deletions, subdirectoryCounts, reimports, localSets, findings] {
                try db.execute(sql: part)
            }
        }
        migrator.registerMigration("0002 subdirectories") { db in try db.execute(sql: subdirectories) }
        migrator.registerMigration("0003 deletion.inode") { db in
            try db.execute(sql: "ALTER TABLE deletion ADD COLUMN inode INTEGER")
        }
        migrator.registerMigration("0004 takeover") { db in try db.execute(sql: takeover) }
        migrator.registerMigration("0005 invalidations") { db in try db.execute(sql: invalidations) }
        migrator.registerMigration("0006 item.collisions") { db in
            try db.execute(sql: "ALTER TABLE item ADD COLUMN collisions INTEGER NOT NULL DEFAULT 0")
        }
        migrator.registerMigration("0007 deletion.trashedTop") { db in
            try db.execute(sql: "ALTER TABLE deletion ADD COLUMN trashedTop TEXT")
        }
        migrator.registerMigration("0008 unanswered.digest") { db in
            try db.execute(sql: "ALTER TABLE unanswered ADD COLUMN digest BLOB")
        }
        migrator.registerMigration("0009 deletion.trashedTop of old rows") { db in
            try db.execute(
                sql: """
                    UPDATE deletion SET trashedTop = identifier
                    WHERE trashedTop IS NULL AND baseParent = 'yonder.trash'
                    """)
        }
        migrator.registerMigration("0010 late requests") { db in try db.execute(sql: lateRequests) }
        migrator.registerMigration("0011 triggers") { db in
            // The baseline's triggers of the sets are there before a provider follows them.
            for name in try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'trigger'") {
                try db.execute(sql: "DROP TRIGGER \(name)")
            }
            try db.execute(sql: markedDirectories)
            let isFollowed = "SELECT EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed')"
            if try Bool.fetchOne(db, sql: isFollowed) == true { try db.execute(sql: followedSets) }
        }
        migrator.registerMigration("0012 versions") { db in
            // It is made again by the first search for a version: the providers with identifiers of their own never search.
            try db.execute(sql: "DROP INDEX itemByContentVersion")
        }
        migrator.registerMigration("0013 held removals") { db in try db.execute(sql: heldRemovals) }
        migrator.registerMigration("0014 evicted listings") { db in try db.execute(sql: evictedListings) }
        migrator.registerMigration("0015 pending children") { db in try db.execute(sql: pendingChildren) }
        migrator.registerMigration("0016 renamed items") { db in try db.execute(sql: renamedItems) }
        return migrator
    }

    /// An eviction did not note which items were there: those of evicted directories were not made here.
    private static let evictedListings = """
        UPDATE inode SET contentGeneration = (SELECT COALESCE(MAX(id), 0) FROM item)
        WHERE kind = 2 AND content = 0 AND contentGeneration > 0;
        """

    /// Each plan asks whether something is pending in a directory whose date is, and a directory may have a million other items.
    private static let pendingChildren = """
        CREATE INDEX pendingChild ON item (parent) WHERE changedFields <> 0 AND isExcluded = 0;
        """

    /// Each name that becomes free may be that of an item that is shown under another one.
    private static let renamedItems = """
        DROP INDEX renamedItem;
        CREATE INDEX renamedItem ON item (parent, baseName) WHERE name <> baseName;
        """

    /// What is made when it is first needed, because each insertion pays for it: the key that says whether it was, and how.
    static let partsOnDemand: [(key: DomainKey, sql: String)] = [
        (.setsAreFollowed, followedSets), (.versionsAreIndexed, contentVersions),
    ]

    private static let contentVersions = """
        CREATE INDEX itemByContentVersion ON item (baseContentVersion)
            WHERE baseContentVersion <> x'' AND identifier IS NOT NULL;
        """

    /// An index of the subdirectories of each directory: a walk asks for them, and a directory may have a million files.
    private static let subdirectories = """
        ALTER TABLE item ADD COLUMN isDirectory INTEGER NOT NULL DEFAULT 0;
        UPDATE item SET isDirectory = 1 WHERE inode IN (SELECT number FROM inode WHERE kind = 2);
        CREATE INDEX subdirectory ON item (parent) WHERE isDirectory = 1;
        DROP TRIGGER directoryAdded;
        CREATE TRIGGER directoryAdded AFTER INSERT ON item
        WHEN (SELECT kind FROM inode WHERE number = NEW.inode) = 2 BEGIN
            UPDATE inode SET subdirectories = subdirectories + 1 WHERE number = NEW.parent;
            UPDATE item SET isDirectory = 1 WHERE id = NEW.id;
        END;
        """

    /// A directory counts in its parent's link count while its row is marked.
    private static let markedDirectories = """
        CREATE TRIGGER directoryMarked AFTER UPDATE OF isDirectory ON item WHEN OLD.isDirectory <> NEW.isDirectory BEGIN
            UPDATE inode SET subdirectories = subdirectories + NEW.isDirectory - OLD.isDirectory
            WHERE number = NEW.parent;
        END;
        CREATE TRIGGER directoryMoved AFTER UPDATE OF parent ON item
        WHEN OLD.parent IS NOT NEW.parent AND NEW.isDirectory = 1 BEGIN
            UPDATE inode SET subdirectories = subdirectories - 1 WHERE number = OLD.parent;
            UPDATE inode SET subdirectories = subdirectories + 1 WHERE number = NEW.parent;
        END;
        """

    /// The results of the requests that were carried out last, and what opening asks for before the first answer: its
    /// queries must not scan tables.
    private static let takeover = """
        CREATE TABLE answered (
            id INTEGER PRIMARY KEY,
            request INTEGER NOT NULL,
            inode INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX directoryBeingListed ON inode (number) WHERE kind = 2 AND content = 1;
        CREATE INDEX inodeWithIncompleteContent ON inode (number) WHERE hasContentFile = 1 AND content <> 2;
        """

    /// Without reused row IDs, because rows are deleted up to one that was sent.
    private static let invalidations = """
        CREATE TABLE invalidation (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            kind INTEGER NOT NULL,
            inode INTEGER NOT NULL,
            child INTEGER,
            name TEXT
        ) STRICT;
        """

    /// What was sent of an item that is not on the remote, and may still arrive.
    private static let lateRequests = """
        ALTER TABLE unanswered ADD COLUMN placeholder TEXT;
        ALTER TABLE unanswered ADD COLUMN kind INTEGER;
        ALTER TABLE unanswered ADD COLUMN parent TEXT;
        ALTER TABLE unanswered ADD COLUMN name TEXT;
        ALTER TABLE unanswered ADD COLUMN until INTEGER;
        ALTER TABLE unanswered ADD COLUMN renamed INTEGER;
        CREATE INDEX lateRequest ON unanswered (parent, name) WHERE parent IS NOT NULL;
        CREATE INDEX renamedUnanswered ON unanswered (renamed) WHERE renamed IS NOT NULL;
        """

    /// What the provider has reported as deleted before the anchor, and is not removed yet.
    private static let heldRemovals = """
        CREATE TABLE heldRemoval (
            identifier TEXT PRIMARY KEY
        ) STRICT, WITHOUT ROWID;
        """

    private static let domain = """
        CREATE TABLE domain (
            key TEXT PRIMARY KEY,
            value BLOB
        ) STRICT, WITHOUT ROWID;
        """

    private static let findings = """
        CREATE TABLE finding (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            foundAt INTEGER NOT NULL,
            text TEXT NOT NULL
        ) STRICT;
        """

    private static let inodes = """
        CREATE TABLE inode (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 7),
            size INTEGER NOT NULL DEFAULT 0 CHECK (size >= 0),
            permissions INTEGER CHECK (permissions BETWEEN 0 AND 4095),
            owner INTEGER,
            "group" INTEGER,
            device INTEGER NOT NULL DEFAULT 0,
            linkTarget TEXT,
            linkCount INTEGER NOT NULL DEFAULT 1 CHECK (linkCount >= 0),
            subdirectories INTEGER NOT NULL DEFAULT 0,
            modifiedAt INTEGER NOT NULL,
            changedAt INTEGER NOT NULL,
            createdAt INTEGER NOT NULL,
            accessedAt INTEGER,
            content INTEGER NOT NULL DEFAULT 0 CHECK (content BETWEEN 0 AND 2),
            contentVersion BLOB NOT NULL DEFAULT x'',
            contentGeneration INTEGER NOT NULL DEFAULT 0,
            contentStamp INTEGER,
            localBytes INTEGER NOT NULL DEFAULT 0,
            hasContentFile INTEGER NOT NULL DEFAULT 0,
            hasUnusualAllocation INTEGER NOT NULL DEFAULT 0,
            isDurable INTEGER NOT NULL DEFAULT 0,
            readAt INTEGER,
            fetchAgain INTEGER NOT NULL DEFAULT 0,
            fetchedFor TEXT,
            isIncomplete INTEGER NOT NULL DEFAULT 0,
            comparedVersion BLOB,
            changeMark BLOB
        ) STRICT;

        CREATE INDEX inodeWithContentFile ON inode (number) WHERE hasContentFile = 1;
        CREATE INDEX inodeWithoutName ON inode (number) WHERE linkCount = 0;
        CREATE INDEX inodeOpenForWriting ON inode (number) WHERE contentStamp IS NOT NULL;
        CREATE INDEX inodeToFetchAgain ON inode (number) WHERE fetchAgain = 1;
        CREATE INDEX contentByUse ON inode (COALESCE(readAt, changedAt), number, localBytes) WHERE hasContentFile = 1;
        CREATE INDEX directoryWithListing ON inode (number) WHERE kind = 2 AND content <> 0;
        CREATE INDEX materializedDirectory ON inode (number) WHERE kind = 2 AND content = 2;
        CREATE INDEX directoryToCompare ON inode (number) WHERE isIncomplete <> 0;

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

    private static let items = """
        CREATE TABLE item (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            inode INTEGER NOT NULL REFERENCES inode (number),
            parent INTEGER REFERENCES inode (number),
            name TEXT NOT NULL,
            identifier TEXT,
            capabilities INTEGER NOT NULL,
            policy INTEGER NOT NULL DEFAULT 0 CHECK (policy BETWEEN 0 AND 3),
            userPolicy INTEGER CHECK (userPolicy BETWEEN 0 AND 3),
            baseParent TEXT,
            baseName TEXT,
            baseContentVersion BLOB NOT NULL DEFAULT x'',
            baseMetadataVersion BLOB NOT NULL DEFAULT x'',
            baseSize INTEGER NOT NULL DEFAULT 0,
            baseModifiedAt INTEGER,
            changedFields INTEGER NOT NULL DEFAULT 0,
            heldFields INTEGER NOT NULL DEFAULT 0,
            template INTEGER NOT NULL DEFAULT 0,
            wasSent INTEGER NOT NULL DEFAULT 0,
            isExcluded INTEGER NOT NULL DEFAULT 0,
            pendingSince INTEGER,
            attempts INTEGER NOT NULL DEFAULT 0,
            nextTry INTEGER,
            conflictOf TEXT,
            favoriteRank INTEGER,
            tagData BLOB,
            trashRole INTEGER NOT NULL DEFAULT 0 CHECK (trashRole BETWEEN 0 AND 3),
            trashedAt INTEGER,
            trashParent TEXT,
            trashAncestors TEXT,
            trashName TEXT,
            reimport INTEGER NOT NULL DEFAULT 0
        ) STRICT;

        CREATE UNIQUE INDEX itemByName ON item (parent, name);
        CREATE INDEX itemInParent ON item (parent);
        CREATE INDEX itemByInode ON item (inode);
        CREATE UNIQUE INDEX itemByIdentifier ON item (identifier) WHERE identifier IS NOT NULL;
        CREATE INDEX itemByRemoteName ON item (baseParent, baseName) WHERE baseParent IS NOT NULL;
        CREATE INDEX itemByContentVersion ON item (baseContentVersion)
            WHERE baseContentVersion <> x'' AND identifier IS NOT NULL;
        CREATE INDEX renamedItem ON item (parent) WHERE name <> baseName;
        CREATE INDEX movedItem ON item (baseParent) WHERE changedFields & 4 <> 0 AND baseParent IS NOT NULL;
        CREATE INDEX pendingItem ON item (id) WHERE changedFields <> 0 AND isExcluded = 0;
        CREATE INDEX excludedItem ON item (id) WHERE isExcluded = 2;
        CREATE INDEX keptItem ON item (inode) WHERE COALESCE(userPolicy, policy) = 3;
        CREATE INDEX conflictCopy ON item (id) WHERE conflictOf IS NOT NULL;
        CREATE INDEX trashDirectory ON item (inode) WHERE trashRole <> 0;
        CREATE INDEX trashedItem ON item (id) WHERE trashedAt IS NOT NULL;
        CREATE INDEX itemToOffer ON item (id) WHERE reimport > 0;
        CREATE INDEX childToOffer ON item (parent, attempts) WHERE reimport > 0;
        """

    private static let deletions = """
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
            message TEXT,
            isToBeFound INTEGER NOT NULL DEFAULT 0
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
        """

    /// `stat` shows the number of subdirectories in a directory's link count.
    private static let subdirectoryCounts = """
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

    private static let reimports = """
        CREATE TABLE reimport (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            inode INTEGER NOT NULL,
            requestedAt INTEGER NOT NULL,
            total INTEGER NOT NULL DEFAULT 0,
            isComplete INTEGER NOT NULL DEFAULT 0
        ) STRICT;

        CREATE TABLE reimportDirectory (
            inode INTEGER PRIMARY KEY,
            after INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID;
        """
}
