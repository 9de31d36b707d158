extension ReplicaDatabase {
    /// Lets local changes wait for their commit from now on, if the database is a new one: else they do already.
    func beginRedoLog() throws {
        guard !uncommitted.isReady, let identity = try value(of: .identity) else { return }
        uncommitted.begin(try RedoLog.open(at: redoLog, of: identity).log, after: 0)
    }

    /// Writes the files that were made before the daemon died, and lets new ones wait from now on.
    func recoverNewFiles() throws {
        guard let identity = try value(of: .identity) else { return }
        let written = try value(of: .newFilesWritten).flatMap(Int64.init) ?? 0
        let (log, files) = try NewFileLog.open(at: newFileLog, of: identity)
        let newest = Dictionary(files.map { ($0.sequence, $0) }, uniquingKeysWith: { $1 })
        let missing = newest.values.filter { $0.sequence > written }.sorted { $0.sequence < $1.sequence }
        if !missing.isEmpty { try write { db in try db.insert(missing) } }
        let answered = files.suffix(2 * Int(RecordedAnswers.most)).filter { $0.request != nil }
        if !answered.isEmpty { try write { db in try db.recordAnswers(of: answered) } }
        newFiles.begin(log, with: files, after: max(written, newest.keys.max() ?? 0))
    }
}
