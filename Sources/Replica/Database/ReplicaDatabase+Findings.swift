import FileProvider

/// What was found and corrected when the replica was opened. It is kept until a check with `--repair` has reported it, so
/// that a mount before the check does not hide it.
extension ReplicaDatabase {
    /// The oldest of more findings than this are dropped.
    private static let mostFindings = 1000

    func keep(findings: [String], at time: FileTimestamp) throws {
        guard !findings.isEmpty else { return }
        try write { db in
            for text in findings.suffix(Self.mostFindings) {
                try db.run("INSERT INTO finding (foundAt, text) VALUES (?, ?)", [time.nanosecondsSince1970, text])
            }
            try db.run(
                "DELETE FROM finding WHERE id <= (SELECT MAX(id) FROM finding) - ?", [Int64(Self.mostFindings)])
        }
    }

    func keptFindings() throws -> [String] {
        try read { db in try db.all("SELECT text FROM finding ORDER BY id", [], { $0[0] as String }) }
    }

    func forgetFindings() throws {
        try write { db in try db.run("DELETE FROM finding", []) }
    }
}
