extension Schema {
    /// The histories of the sets of materialized and of pending items: a row for each identifier, the newest change last.
    /// A row says only that a member changed; its state is read from the tables of items.
    static let localSets =
        ([table("materializedChange"), table("pendingChange")] + triggers(onlyIf: isFollowed)).joined(separator: "\n")

    /// The triggers that write the histories, so that no statement that changes an item can omit it.
    ///
    /// They are made when a provider follows the sets for the first time. With a trigger, even one whose condition does not hold,
    /// an item's insertion or deletion takes more than twice as long: SQLite copies each page that such a statement changes. A
    /// row is replaced in two statements, because a conflict clause in a trigger is overridden by the one of the statement
    /// that fires the trigger.
    static let followedSets = triggers(onlyIf: nil).joined(separator: "\n")

    /// - Parameter condition: of all of them beside their own, as the baseline has them; nil for none.
    private static func triggers(onlyIf condition: String?) -> [String] {
        let also = condition.map { "\($0) AND " } ?? ""
        func trigger(
            _ name: String, on event: String, of row: String,
            in tables: [String] = ["materializedChange", "pendingChange"], when ownCondition: String
        ) -> String {
            changeTrigger(name, on: event, of: row, in: tables, when: "\(also)(\(ownCondition))")
        }
        return [
            // Content was added, was removed or changed its length.
            """
            CREATE TRIGGER contentChanged AFTER UPDATE OF content, hasContentFile, size ON inode
            WHEN \(also)NEW.kind IN (1, 2) AND (OLD.content = 2 OR NEW.content = 2)
                AND (OLD.content <> NEW.content OR OLD.hasContentFile <> NEW.hasContentFile
                    OR OLD.size <> NEW.size AND NEW.kind = 1)
            BEGIN
                DELETE FROM materializedChange WHERE identifier IN (
                    SELECT COALESCE(identifier, \(placeholder("item"))) FROM item
                    WHERE inode = NEW.number AND isExcluded = 0);
                INSERT INTO materializedChange (identifier)
                    SELECT COALESCE(identifier, \(placeholder("item"))) FROM item
                    WHERE inode = NEW.number AND isExcluded = 0;
            END;
            """,
            // A new local item is materialized and pending.
            trigger("itemMade", on: "INSERT", of: "NEW", when: "NEW.changedFields <> 0 AND NEW.isExcluded = 0"),
            trigger(
                "materializedItemGone", on: "DELETE", of: "OLD", in: ["materializedChange"],
                when: "OLD.isExcluded = 0 AND \(isMaterialized("OLD"))"),
            trigger(
                "pendingItemGone", on: "DELETE", of: "OLD", in: ["pendingChange"],
                when: "OLD.isExcluded = 0 AND OLD.changedFields <> 0"),
            // An item has another name, parent or identifier.
            trigger(
                "materializedItemMoved", on: "UPDATE OF identifier, name, parent, inode, isExcluded", of: "NEW",
                in: ["materializedChange"], when: "\(isElsewhere) AND \(isMaterialized("NEW"))"),
            trigger(
                "pendingItemMoved", on: "UPDATE OF identifier, name, parent, isExcluded, changedFields", of: "NEW",
                in: ["pendingChange"],
                when: """
                    (OLD.changedFields <> 0) <> (NEW.changedFields <> 0) OR NEW.changedFields <> 0 AND \(isElsewhere)
                    """),
            trigger(
                "materializedItemRenamed", on: "UPDATE OF identifier", of: "OLD", in: ["materializedChange"],
                when: "OLD.identifier IS NOT NEW.identifier AND \(isMaterialized("NEW"))"),
            trigger(
                "pendingItemRenamed", on: "UPDATE OF identifier", of: "OLD", in: ["pendingChange"],
                when: "OLD.identifier IS NOT NEW.identifier"),
            deletionTrigger("deletionQueued", on: "INSERT", of: "NEW", when: condition),
            deletionTrigger("deletionDone", on: "DELETE", of: "OLD", when: condition),
        ]
    }

    private static func table(_ name: String) -> String {
        """
        CREATE TABLE \(name) (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT,
            identifier TEXT NOT NULL UNIQUE
        ) STRICT;
        """
    }

    private static func changeTrigger(
        _ name: String, on event: String, of row: String, in tables: [String], when condition: String
    ) -> String {
        let identifier = "COALESCE(\(row).identifier, \(placeholder(row)))"
        let statements = tables.map {
            """
                DELETE FROM \($0) WHERE identifier = \(identifier);
                INSERT INTO \($0) (identifier) VALUES (\(identifier));
            """
        }
        return """
            CREATE TRIGGER \(name) AFTER \(event) ON item WHEN \(condition)
            BEGIN
            \(statements.joined(separator: "\n"))
            END;
            """
    }

    private static func deletionTrigger(
        _ name: String, on event: String, of row: String, when condition: String?
    ) -> String {
        """
        CREATE TRIGGER \(name) AFTER \(event) ON deletion\(condition.map { " WHEN \($0)" } ?? "")
        BEGIN
            DELETE FROM pendingChange WHERE identifier = \(row).identifier;
            INSERT INTO pendingChange (identifier) VALUES (\(row).identifier);
        END;
        """
    }

    /// The identifier of an item before the provider gives it one, as `ItemRecord.placeholder`.
    private static func placeholder(_ row: String) -> String {
        "printf('\(ItemRecord.placeholderPrefix)%x.%x', \(row).id, \(row).template)"
    }

    private static func isMaterialized(_ row: String) -> String {
        """
        EXISTS (SELECT 1 FROM inode WHERE number = \(row).inode AND content = 2
            AND (kind = 2 OR kind = 1 AND hasContentFile = 1))
        """
    }

    private static let isFollowed = "EXISTS (SELECT 1 FROM domain WHERE key = 'setsAreFollowed')"

    private static let isElsewhere = """
        (OLD.identifier IS NOT NEW.identifier OR OLD.name <> NEW.name OR OLD.parent IS NOT NEW.parent
            OR OLD.inode <> NEW.inode OR OLD.isExcluded <> NEW.isExcluded)
        """
}
