BEGIN TRANSACTION;
CREATE TABLE contentRange (
    inode INTEGER NOT NULL REFERENCES inode (number) ON DELETE CASCADE,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL CHECK ("end" > start),
    PRIMARY KEY (inode, start)
) STRICT, WITHOUT ROWID;
INSERT INTO "contentRange" VALUES(3,0,40);
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
INSERT INTO "deletion" VALUES(1,'identifier of removed',1,'yonder.root','removed',X'31',X'31',1795357970903834027,0,NULL,NULL,NULL,0);
CREATE TABLE domain (
    key TEXT PRIMARY KEY,
    value BLOB
) STRICT, WITHOUT ROWID;
INSERT INTO "domain" VALUES('bootIdentifier',X'626F6F74');
INSERT INTO "domain" VALUES('hasTrash',X'31');
INSERT INTO "domain" VALUES('identity',X'45463238363746302D444442412D343337392D394637422D333830423837394434384144');
INSERT INTO "domain" VALUES('setsAreFollowed',X'31');
INSERT INTO "domain" VALUES('source',X'2F72656D6F7465');
INSERT INTO "domain" VALUES('syncAnchor',X'616E63686F72');
INSERT INTO "domain" VALUES('wasClosed',X'31');
CREATE TABLE extendedAttribute (
    inode INTEGER NOT NULL REFERENCES inode (number) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (inode, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "extendedAttribute" VALUES(8,'comment',X'6B657074');
CREATE TABLE failure (
    inode INTEGER PRIMARY KEY REFERENCES inode (number) ON DELETE CASCADE,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 1,
    failedAt INTEGER NOT NULL
) STRICT;
CREATE TABLE finding (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    foundAt INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
INSERT INTO "grdb_migrations" VALUES('0001 baseline');
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
INSERT INTO "inode" VALUES(1,2,0,NULL,NULL,NULL,0,NULL,1,2,1795357970903834027,1795357970903834027,1795357970893097786,NULL,2,X'',0,NULL,0,0,0,0,NULL,0,NULL,0,NULL,NULL);
INSERT INTO "inode" VALUES(2,1,100,NULL,NULL,NULL,0,NULL,1,0,1000000000123456789,1000000000123456789,1000000000123456789,NULL,2,X'31',1,NULL,100,1,0,1,1795357970902717406,0,NULL,0,NULL,NULL);
INSERT INTO "inode" VALUES(3,1,100,NULL,NULL,NULL,0,NULL,1,0,1000000000123456789,1000000000123456789,1000000000123456789,NULL,1,X'31',1,NULL,40,1,0,1,1795357970903670819,0,NULL,0,NULL,NULL);
INSERT INTO "inode" VALUES(4,1,100,NULL,NULL,NULL,0,NULL,1,0,1000000000123456789,1795357970903834027,1000000000123456789,NULL,0,X'31',0,NULL,0,0,0,0,NULL,0,NULL,0,NULL,NULL);
INSERT INTO "inode" VALUES(6,1,100,NULL,NULL,NULL,0,NULL,1,0,1000000000123456789,1795357970903834027,1000000000123456789,NULL,0,X'31',0,NULL,0,0,0,0,NULL,0,NULL,0,NULL,NULL);
INSERT INTO "inode" VALUES(7,2,0,NULL,NULL,NULL,0,NULL,1,0,1795357970898427254,1795357970898427254,1795357970898427254,NULL,0,X'31',0,NULL,0,0,0,0,NULL,0,NULL,0,NULL,NULL);
INSERT INTO "inode" VALUES(8,1,10,420,1000,1000,0,NULL,1,0,1795357970903834027,1795357970903834027,1795357970903834027,1795357970903834027,2,X'',0,NULL,10,1,1,1,NULL,0,NULL,0,NULL,NULL);
INSERT INTO "inode" VALUES(9,2,0,448,1000,1000,0,NULL,1,2,1795357970903834027,1795357970903834027,1795357970903834027,NULL,2,X'',0,NULL,0,0,0,0,NULL,0,NULL,0,NULL,NULL);
INSERT INTO "inode" VALUES(10,2,0,448,1000,1000,0,NULL,1,0,1795357970903834027,1795357970903834027,1795357970903834027,NULL,2,X'',0,NULL,0,0,0,0,NULL,0,NULL,0,NULL,NULL);
INSERT INTO "inode" VALUES(11,2,0,448,1000,1000,0,NULL,1,0,1795357970903834027,1795357970903834027,1795357970903834027,NULL,2,X'',0,NULL,0,0,0,0,NULL,0,NULL,0,NULL,NULL);
INSERT INTO "inode" VALUES(12,1,59,384,1000,1000,0,NULL,1,0,1795357970903834027,1795357970903834027,1795357970903834027,NULL,2,X'',0,NULL,59,1,0,1,NULL,0,NULL,0,NULL,NULL);
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
INSERT INTO "item" VALUES(1,1,NULL,'/','yonder.root',255,0,NULL,NULL,NULL,X'',X'',0,NULL,128,0,0,0,0,1795357970903834027,0,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "item" VALUES(2,2,1,'file','identifier of file',255,0,NULL,'yonder.root','file',X'31',X'31',100,1000000000123456789,0,0,0,0,0,NULL,0,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "item" VALUES(3,3,1,'partial','identifier of partial',255,0,NULL,'yonder.root','partial',X'31',X'31',100,1000000000123456789,0,0,0,0,0,NULL,0,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "item" VALUES(4,4,1,'renamed here','identifier of renamed',255,0,NULL,'yonder.root','renamed there',X'31',X'31',100,1000000000123456789,2,0,0,0,0,1795357970903834027,0,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "item" VALUES(6,6,10,'trashed','identifier of trashed',255,0,NULL,'yonder.root','trashed',X'31',X'31',100,1000000000123456789,4,0,0,0,0,1795357970903834027,0,NULL,NULL,NULL,NULL,0,1795357970903834027,'yonder.root','1','trashed',0);
INSERT INTO "item" VALUES(7,7,1,'directory','identifier of directory',239,0,NULL,'yonder.root','directory',X'31',X'31',0,NULL,0,0,0,0,0,NULL,0,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "item" VALUES(8,8,1,'new',NULL,255,0,NULL,NULL,NULL,X'',X'',0,NULL,197319,0,3795727466927222123,0,0,1795357970903834027,0,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "item" VALUES(9,9,1,'.Trash-1000',NULL,239,0,NULL,NULL,NULL,X'',X'',0,NULL,0,0,610250779472846079,0,1,NULL,0,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,0);
INSERT INTO "item" VALUES(10,10,9,'files',NULL,239,0,NULL,NULL,NULL,X'',X'',0,NULL,0,0,5500758279978727151,0,1,NULL,0,NULL,NULL,NULL,NULL,2,NULL,NULL,NULL,NULL,0);
INSERT INTO "item" VALUES(11,11,9,'info',NULL,239,0,NULL,NULL,NULL,X'',X'',0,NULL,0,0,821561763620972253,0,1,NULL,0,NULL,NULL,NULL,NULL,3,NULL,NULL,NULL,NULL,0);
INSERT INTO "item" VALUES(12,12,11,'trashed.trashinfo',NULL,239,0,NULL,NULL,NULL,X'',X'',0,NULL,0,0,4458326263651691099,0,1,NULL,0,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
CREATE TABLE materializedChange (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    identifier TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO "materializedChange" VALUES(1,'yonder.root');
INSERT INTO "materializedChange" VALUES(2,'identifier of file');
INSERT INTO "materializedChange" VALUES(4,'yonder.new.8.34ad22054263ed6b');
CREATE TABLE nameless (
    inode INTEGER PRIMARY KEY REFERENCES inode (number) ON DELETE CASCADE,
    reason INTEGER NOT NULL CHECK (reason BETWEEN 1 AND 3),
    identifier TEXT,
    wasOpen INTEGER NOT NULL DEFAULT 0,
    item INTEGER,
    parent INTEGER,
    name TEXT
) STRICT;
CREATE TABLE pendingChange (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    identifier TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO "pendingChange" VALUES(1,'identifier of renamed');
INSERT INTO "pendingChange" VALUES(2,'yonder.root');
INSERT INTO "pendingChange" VALUES(3,'identifier of removed');
INSERT INTO "pendingChange" VALUES(4,'yonder.new.8.34ad22054263ed6b');
INSERT INTO "pendingChange" VALUES(5,'identifier of trashed');
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
CREATE TABLE unanswered (
    item INTEGER,
    deletion INTEGER,
    size INTEGER NOT NULL,
    modifiedAt INTEGER NOT NULL
) STRICT;
CREATE INDEX inodeWithContentFile ON inode (number) WHERE hasContentFile = 1;
CREATE INDEX inodeWithoutName ON inode (number) WHERE linkCount = 0;
CREATE INDEX inodeOpenForWriting ON inode (number) WHERE contentStamp IS NOT NULL;
CREATE INDEX inodeToFetchAgain ON inode (number) WHERE fetchAgain = 1;
CREATE INDEX contentByUse ON inode (COALESCE(readAt, changedAt), number, localBytes) WHERE hasContentFile = 1;
CREATE INDEX directoryWithListing ON inode (number) WHERE kind = 2 AND content <> 0;
CREATE INDEX materializedDirectory ON inode (number) WHERE kind = 2 AND content = 2;
CREATE INDEX directoryToCompare ON inode (number) WHERE isIncomplete <> 0;
CREATE INDEX namelessByIdentifier ON nameless (identifier) WHERE identifier IS NOT NULL;
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
CREATE INDEX deletionByPlace ON deletion (baseParent, baseName);
CREATE INDEX unansweredItem ON unanswered (item);
CREATE INDEX unansweredDeletion ON unanswered (deletion);
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
CREATE TRIGGER contentChanged AFTER UPDATE OF content, hasContentFile, size ON inode
WHEN EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed') AND NEW.kind IN (1, 2) AND (OLD.content = 2 OR NEW.content = 2)
    AND (OLD.content <> NEW.content OR OLD.hasContentFile <> NEW.hasContentFile
        OR OLD.size <> NEW.size AND NEW.kind = 1)
BEGIN
    DELETE FROM materializedChange WHERE identifier IN (
        SELECT COALESCE(identifier, printf('yonder.new.%x.%x', item.id, item.template)) FROM item
        WHERE inode = NEW.number AND isExcluded = 0);
    INSERT INTO materializedChange (identifier)
        SELECT COALESCE(identifier, printf('yonder.new.%x.%x', item.id, item.template)) FROM item
        WHERE inode = NEW.number AND isExcluded = 0;
END;
CREATE TRIGGER itemMade AFTER INSERT ON item WHEN EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed') AND (NEW.changedFields <> 0 AND NEW.isExcluded = 0)
BEGIN
    DELETE FROM materializedChange WHERE identifier = COALESCE(NEW.identifier, printf('yonder.new.%x.%x', NEW.id, NEW.template));
    INSERT INTO materializedChange (identifier) VALUES (COALESCE(NEW.identifier, printf('yonder.new.%x.%x', NEW.id, NEW.template)));
    DELETE FROM pendingChange WHERE identifier = COALESCE(NEW.identifier, printf('yonder.new.%x.%x', NEW.id, NEW.template));
    INSERT INTO pendingChange (identifier) VALUES (COALESCE(NEW.identifier, printf('yonder.new.%x.%x', NEW.id, NEW.template)));
END;
CREATE TRIGGER materializedItemGone AFTER DELETE ON item WHEN EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed') AND (OLD.isExcluded = 0 AND EXISTS (SELECT 1 FROM inode WHERE number = OLD.inode AND content = 2
    AND (kind = 2 OR kind = 1 AND hasContentFile = 1)))
BEGIN
    DELETE FROM materializedChange WHERE identifier = COALESCE(OLD.identifier, printf('yonder.new.%x.%x', OLD.id, OLD.template));
    INSERT INTO materializedChange (identifier) VALUES (COALESCE(OLD.identifier, printf('yonder.new.%x.%x', OLD.id, OLD.template)));
END;
CREATE TRIGGER pendingItemGone AFTER DELETE ON item WHEN EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed') AND (OLD.isExcluded = 0 AND OLD.changedFields <> 0)
BEGIN
    DELETE FROM pendingChange WHERE identifier = COALESCE(OLD.identifier, printf('yonder.new.%x.%x', OLD.id, OLD.template));
    INSERT INTO pendingChange (identifier) VALUES (COALESCE(OLD.identifier, printf('yonder.new.%x.%x', OLD.id, OLD.template)));
END;
CREATE TRIGGER materializedItemMoved AFTER UPDATE OF identifier, name, parent, inode, isExcluded ON item WHEN EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed') AND ((OLD.identifier IS NOT NEW.identifier OR OLD.name <> NEW.name OR OLD.parent IS NOT NEW.parent
    OR OLD.inode <> NEW.inode OR OLD.isExcluded <> NEW.isExcluded) AND EXISTS (SELECT 1 FROM inode WHERE number = NEW.inode AND content = 2
    AND (kind = 2 OR kind = 1 AND hasContentFile = 1)))
BEGIN
    DELETE FROM materializedChange WHERE identifier = COALESCE(NEW.identifier, printf('yonder.new.%x.%x', NEW.id, NEW.template));
    INSERT INTO materializedChange (identifier) VALUES (COALESCE(NEW.identifier, printf('yonder.new.%x.%x', NEW.id, NEW.template)));
END;
CREATE TRIGGER pendingItemMoved AFTER UPDATE OF identifier, name, parent, isExcluded, changedFields ON item WHEN EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed') AND ((OLD.changedFields <> 0) <> (NEW.changedFields <> 0) OR NEW.changedFields <> 0 AND (OLD.identifier IS NOT NEW.identifier OR OLD.name <> NEW.name OR OLD.parent IS NOT NEW.parent
    OR OLD.inode <> NEW.inode OR OLD.isExcluded <> NEW.isExcluded))
BEGIN
    DELETE FROM pendingChange WHERE identifier = COALESCE(NEW.identifier, printf('yonder.new.%x.%x', NEW.id, NEW.template));
    INSERT INTO pendingChange (identifier) VALUES (COALESCE(NEW.identifier, printf('yonder.new.%x.%x', NEW.id, NEW.template)));
END;
CREATE TRIGGER materializedItemRenamed AFTER UPDATE OF identifier ON item WHEN EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed') AND (OLD.identifier IS NOT NEW.identifier AND EXISTS (SELECT 1 FROM inode WHERE number = NEW.inode AND content = 2
    AND (kind = 2 OR kind = 1 AND hasContentFile = 1)))
BEGIN
    DELETE FROM materializedChange WHERE identifier = COALESCE(OLD.identifier, printf('yonder.new.%x.%x', OLD.id, OLD.template));
    INSERT INTO materializedChange (identifier) VALUES (COALESCE(OLD.identifier, printf('yonder.new.%x.%x', OLD.id, OLD.template)));
END;
CREATE TRIGGER pendingItemRenamed AFTER UPDATE OF identifier ON item WHEN EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed') AND (OLD.identifier IS NOT NEW.identifier)
BEGIN
    DELETE FROM pendingChange WHERE identifier = COALESCE(OLD.identifier, printf('yonder.new.%x.%x', OLD.id, OLD.template));
    INSERT INTO pendingChange (identifier) VALUES (COALESCE(OLD.identifier, printf('yonder.new.%x.%x', OLD.id, OLD.template)));
END;
CREATE TRIGGER deletionQueued AFTER INSERT ON deletion WHEN EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed')
BEGIN
    DELETE FROM pendingChange WHERE identifier = NEW.identifier;
    INSERT INTO pendingChange (identifier) VALUES (NEW.identifier);
END;
CREATE TRIGGER deletionDone AFTER DELETE ON deletion WHEN EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed')
BEGIN
    DELETE FROM pendingChange WHERE identifier = OLD.identifier;
    INSERT INTO pendingChange (identifier) VALUES (OLD.identifier);
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('inode',12);
INSERT INTO "sqlite_sequence" VALUES('pendingChange',5);
INSERT INTO "sqlite_sequence" VALUES('materializedChange',4);
INSERT INTO "sqlite_sequence" VALUES('item',12);
INSERT INTO "sqlite_sequence" VALUES('deletion',1);
COMMIT;
