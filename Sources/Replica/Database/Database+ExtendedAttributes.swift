import Foundation
import GRDB

/// The extended attributes of inodes. A change of one is made pending by its caller.
extension Database {
    func extendedAttributeNames(of number: InodeNumber) throws -> [String] {
        try String.fetchAll(
            cachedStatement(sql: "SELECT name FROM extendedAttribute WHERE inode = ? ORDER BY name"),
            arguments: [number.rawValue])
    }

    func extendedAttributes(of number: InodeNumber) throws -> [String: [UInt8]] {
        let rows = try Row.fetchAll(
            cachedStatement(sql: "SELECT name, value FROM extendedAttribute WHERE inode = ?"),
            arguments: [number.rawValue])
        return Dictionary(
            rows.map { ($0[0] as String, [UInt8]($0[1] as Data)) }, uniquingKeysWith: { first, _ in first })
    }

    func extendedAttribute(_ name: String, of number: InodeNumber) throws -> [UInt8]? {
        try one(
            "SELECT value FROM extendedAttribute WHERE inode = ? AND name = ?", [number.rawValue, name],
            { [UInt8]($0[0] as Data) })
    }

    func setExtendedAttribute(_ name: String, of number: InodeNumber, to value: [UInt8]) throws {
        try run(
            "INSERT OR REPLACE INTO extendedAttribute (inode, name, value) VALUES (?, ?, ?)",
            [number.rawValue, name, Data(value)])
    }

    /// - Returns: whether it was there.
    @discardableResult
    func removeExtendedAttribute(_ name: String, of number: InodeNumber) throws -> Bool {
        try run("DELETE FROM extendedAttribute WHERE inode = ? AND name = ?", [number.rawValue, name])
        return changesCount > 0
    }
}
