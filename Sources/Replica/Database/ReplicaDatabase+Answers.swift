import Syscalls

extension ReplicaDatabase {
    /// Deletes the recorded answers: the requests of a new mount are numbered from the start again.
    package func forgetAnswers() throws {
        try write { db in try db.run("DELETE FROM answered", []) }
        try newFiles.forgetAnswers()
    }

    /// Whether a request that the kernel sends again was carried out before.
    package func wasCarriedOut(_ request: RequestNumber?) throws -> Bool {
        guard let request, request.isResent else { return false }
        return try read { db in try db.recordedAnswer(to: request) != nil }
    }
}
