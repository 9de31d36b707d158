import GRDB
import Syscalls

/// The results of the kernel's requests that were committed last. Each is written in the transaction of its change, so that
/// a request that the kernel sends again after a crash has its result here if and only if its change was committed.
enum RecordedAnswers {
    /// At least this many of the newest answers are kept, of transactions and of the creation log each. It exceeds the number
    /// of requests that can be committed and not answered yet: each occupies a serving thread.
    static let most: Int64 = 64
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
        try run("DELETE FROM answered WHERE id <= ?", [id - 3 * RecordedAnswers.most])
    }

    /// Records the requests that have made files without a transaction of their own, as the creation log has them. Writing
    /// them with each file would add a tenth to the cost of a creation.
    func recordAnswers(of files: [NewFile]) throws {
        for file in files {
            guard let request = file.request, try recordedAnswer(to: request) == nil else { continue }
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
