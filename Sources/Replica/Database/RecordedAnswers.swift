import GRDB
import Syscalls

/// The results of the kernel's requests that were committed last. Each is written in the transaction of its change, so that
/// a request that the kernel sends again after a crash has its result here if and only if its change was committed.
enum RecordedAnswers {
    /// At least this many of the newest answers of the creation log are kept, and eight times as many in the table. A thread that has
    /// committed a change can lose its processor before it has answered the kernel, while the others commit changes: on a loaded
    /// machine some hundred.
    static let most: Int64 = 512
}

extension Database {
    /// Records that a request was carried out.
    ///
    /// - Parameter inode: the inode that the request returned; nil for none.
    func recordAnswer(to request: RequestNumber, inode: InodeNumber?) throws {
        try run(
            "INSERT INTO answered (request, inode) VALUES (?, ?)",
            [Int64(bitPattern: request.rawValue), inode?.rawValue ?? 0])
        let id = lastInsertedRowID
        // Recovery adds those of the creation log.
        guard id % RecordedAnswers.most == 0 else { return }
        try run("DELETE FROM answered WHERE id <= ?", [id - 8 * RecordedAnswers.most])
    }

    /// Records the requests that have made files without a transaction of their own, as the creation log has them. Writing
    /// them with each file would add a tenth to the cost of a creation.
    func recordAnswers(of files: [NewFile]) throws {
        let known = Set(try all("SELECT request FROM answered", [], { $0[0] as Int64 }))
        for file in files {
            guard let request = file.request, !known.contains(Int64(bitPattern: request.rawValue)) else { continue }
            try recordAnswer(to: request, inode: file.number)
        }
    }

    /// The inode that a request returned; 0 for none.
    ///
    /// - Returns: nil if no such request was carried out.
    func recordedAnswer(to request: RequestNumber) throws -> InodeNumber? {
        try one(
            "SELECT inode FROM answered WHERE request = ? ORDER BY id DESC LIMIT 1",
            [Int64(bitPattern: request.rawValue)], { InodeNumber(rawValue: $0[0]) })
    }
}
