import FileProvider
import Foundation
import GRDB

/// The listings of directories: dataless, partial while it is under way, materialized; and what has to be compared.
extension Database {
    func beginListing(of directory: InodeNumber) throws {
        try run("UPDATE inode SET content = \(content: .partial) WHERE number = ?", [directory.rawValue])
    }

    /// Abandons a listing under way; a materialized one stays. Nothing is left to be compared.
    func abandonListing(of directory: InodeNumber) throws {
        try run(
            """
            UPDATE inode SET \(Self.abandoned)
            WHERE number = ? AND content = \(content: .partial)
            """, [directory.rawValue])
    }

    /// Abandons all listings that were under way when the daemon ended.
    func abandonListings() throws {
        try run(Self.abandonment, [])
    }

    static let abandonment = """
        UPDATE inode SET \(abandoned)
        WHERE kind = \(kind: .directory) AND content = \(content: .partial)
        """

    /// The items that its pages have brought are not newer than the listing. They were not made here: they have no template.
    private static let abandoned = """
        content = \(content: .dataless), isIncomplete = \(comparison: .none),
            contentGeneration = MAX(contentGeneration, COALESCE(
                (SELECT MAX(item.id) FROM item WHERE item.parent = inode.number AND item.template = 0), 0))
        """

    /// A listing under way has all pages; one that was evicted meanwhile stays dataless. Items of the directory that come later are
    /// newer than its listing.
    func finishListing(of directory: InodeNumber) throws {
        try run(
            """
            UPDATE inode SET content = \(content: .materialized),
                contentGeneration = COALESCE((SELECT MAX(id) FROM item), 0)
            WHERE number = ? AND content = \(content: .partial)
            """, [directory.rawValue])
    }

    /// Makes a listing dataless. Its items stay, so that they are the same inodes when it is listed again; nothing is
    /// left to be compared. Items of the directory that come later are newer than what was evicted.
    func dropListing(of directory: InodeNumber) throws {
        try run(
            """
            UPDATE inode SET content = \(content: .dataless), isIncomplete = \(comparison: .none),
                contentGeneration = COALESCE((SELECT MAX(id) FROM item), 0)
            WHERE number = ?
            """, [directory.rawValue])
    }

    /// Makes a listing materialized without asking the remote for it.
    func makeListed(_ directory: InodeNumber, comparison: ComparisonState) throws {
        try run(
            "UPDATE inode SET content = \(content: .materialized), isIncomplete = ? WHERE number = ?",
            [comparison.rawValue, directory.rawValue])
    }

    // MARK: - Comparing with the remote

    /// A directory has to be compared with the remote.
    func noteIncomplete(_ directory: InodeNumber) throws {
        try run("UPDATE inode SET isIncomplete = \(comparison: .needed) WHERE number = ?", [directory.rawValue])
    }

    /// As ``noteIncomplete(_:)``, where the inode is a directory whose listing is here or under way: any other is listed anew.
    func noteIncompleteIfListed(_ directory: InodeNumber) throws {
        try run(
            """
            UPDATE inode SET isIncomplete = \(comparison: .needed)
            WHERE number = ? AND kind = \(kind: .directory) AND content <> \(content: .dataless)
                AND isIncomplete <> \(comparison: .needed)
            """, [directory.rawValue])
    }

    /// As ``noteIncomplete(_:)``, for each directory whose listing is under way.
    func noteListingsUnderWay() throws {
        try run(
            """
            UPDATE inode SET isIncomplete = \(comparison: .needed)
            WHERE kind = \(kind: .directory) AND content = \(content: .partial)
                AND isIncomplete <> \(comparison: .needed)
            """, [])
    }

    /// As ``noteIncompleteIfListed(_:)``, for a directory and all below it.
    func noteIncompleteIfListed(from directory: InodeNumber) throws {
        try run(
            """
            WITH RECURSIVE below (number) AS (
                SELECT ? UNION SELECT item.inode FROM item JOIN below ON item.parent = below.number)
            UPDATE inode SET isIncomplete = \(comparison: .needed)
            WHERE kind = \(kind: .directory) AND content = \(content: .materialized)
                AND number IN (SELECT number FROM below)
            """, [directory.rawValue])
    }

    /// The comparison of a directory begins: what is noted from here on is for the next one.
    func beginComparing(_ directory: InodeNumber) throws {
        try run(
            """
            UPDATE inode SET isIncomplete = \(comparison: .running)
            WHERE number = ? AND isIncomplete <> \(comparison: .none)
            """, [directory.rawValue])
    }

    /// The comparison of a directory has ended, unless it has become necessary once more.
    func finishComparing(_ directory: InodeNumber) throws {
        try run(
            """
            UPDATE inode SET isIncomplete = \(comparison: .none)
            WHERE number = ? AND isIncomplete = \(comparison: .running)
            """, [directory.rawValue])
    }

    /// The remote can be asked for the changes in a directory since this mark; nil where it cannot.
    func setChangeMark(of directory: InodeNumber, to mark: ChangeMark?) throws {
        try run("UPDATE inode SET changeMark = ? WHERE number = ?", [mark.map { Data($0) }, directory.rawValue])
    }

    /// All below a directory is at least as new as this version of the directory.
    func setComparedVersion(of directory: InodeNumber, to version: [UInt8]) throws {
        try run(
            "UPDATE inode SET comparedVersion = ?1 WHERE number = ?2 AND comparedVersion IS NOT ?1",
            [Data(version), directory.rawValue])
    }
}
