import GRDB

/// Compares the schema of a database with the one that the migrations make.
///
/// A damaged byte in a table's definition leaves a database that SQLite opens without complaint, and in which a column or
/// a constraint is missing.
struct SchemaComparison {
    /// The differences, in words; none for a sound schema.
    static func differences(in db: Database) throws -> [String] {
        let model = try DatabaseQueue()
        defer { try? model.close() }
        try Schema.migrator.migrate(model)
        for part in Schema.partsOnDemand where try part.key.bytes(in: db) != nil {
            try model.write { try $0.execute(sql: part.sql) }
        }
        let expected = try model.read { try definitions(in: $0) }
        let present = try definitions(in: db)
        let names = Set(expected.keys).union(present.keys).sorted()
        return names.filter { expected[$0] != present[$0] }.map { "the definition of '\($0)' is damaged" }
    }

    /// The parts of each definition. Their order does not count: a column that an older version added last may be defined
    /// earlier in a new database.
    private static func definitions(in db: Database) throws -> [String: [String]] {
        var definitions: [String: [String]] = [:]
        try db.query("SELECT type, name, sql FROM sqlite_master", []) { columns in
            let parts = (columns[2] as String).split { ",()".contains($0) || $0.isWhitespace }
            definitions["\(columns[0] as String) \(columns[1] as String)"] = parts.map(String.init).sorted()
            return true
        }
        return definitions
    }
}
