import FileProvider
import GRDB
import Syscalls
import Synchronization
import SystemPackage

/// Compares a row with its content file, in a writing transaction: what differs without one may be a change under way.
struct ContentVerification {
    let contents: ContentStore
    let open: any OpenInodes
    private let withdrawals: ContentWithdrawals?
    private let stamp = FileTimestamp.now.nanosecondsSince1970

    /// - Parameter withdrawals: of the transaction, which may be undone: then what was set aside is moved back.
    init(contents: ContentStore, open: any OpenInodes, withdrawals: ContentWithdrawals? = nil) {
        self.contents = contents
        self.open = open
        self.withdrawals = withdrawals
    }

    /// Compares a row with its content file, and corrects the one or the other.
    ///
    /// - Parameters:
    ///   - mayBeInUse: false if no process has seen content of the file or may write to it, although it is being opened.
    ///   - lastSync: the last sync of all contents before a power cut; nil if there was none since the last comparison.
    /// - Returns: what was found and corrected, in words for the user.
    func verify(
        _ number: InodeNumber, mayBeInUse: Bool = true, after lastSync: FileTimestamp? = nil, in db: Database
    ) throws -> [String] {
        // A file that is being written, or was and is not compared yet, has another length than its row.
        guard try db.hasContentFile(number), let inode = try db.inode(number), inode.contentStamp == nil,
            !mayBeInUse || !open.isOpenForWriting(number)
        else { return [] }
        // Content that was just begun has no file yet, and dropped content is about to have none.
        switch inode.content {
        case .dataless: return []
        case .partial where inode.localBytes == 0: return []
        case .partial, .materialized: break
        }
        let isUnsent = try db.isContentUnsent(number)
        guard let name = FilePath.Component(number.description) else { return [] }
        let item = try db.item(ofInode: number)
        let words = item.map { "'\($0.nameForUser)'" } ?? "inode \(number)"
        guard contents.hasFile(number) else {
            // In this order: what a transaction that has failed withdrew is put back at any moment, or by the next start.
            guard !WithdrawnContent(number, generation: inode.contentGeneration, in: contents).isThere,
                !contents.hasFile(number)
            else { return [] }
            var found: [String] = []
            if (try? FileStatus(at: contents.path(of: number))) != nil {
                found = try setAside(name, because: "it is no file")
            }
            try db.dropContent(of: number)
            guard isUnsent else {
                return found + ["the content of \(words) was not in its place: it will be fetched again"]
            }
            try loseContent(of: number, in: db)
            return found + ["what was written to \(words) and is not on the remote is not in its place any more"]
        }
        let status = try contents.status(of: number)
        let length = status.size
        if isUnsent, try Self.missesBytes(number, length: length, of: inode.size, in: db) {
            // What is left must not take the place of what the remote has.
            guard !mayBeInUse || !open.isOpen(number) else { return [] }
            let found = try setAside(
                name,
                because: "of what was written to \(words) only \(length) of \(inode.size) bytes are there; what the "
                    + "remote has is shown")
            try db.dropContent(of: number)
            try db.forgetChangedContent(of: number)
            try db.forgetFailure(of: number)
            return found
        }
        if length != inode.size, isUnsent {
            // It is all there is of what was written here: it is taken as it is, and sent.
            let transaction = LocalTransaction(db: db, open: open, contents: contents)
            let changes = ContentChanges(transaction: transaction)
            try changes.contentWasWritten(number)
            return ["what was written to \(words) has \(length) bytes and not \(inode.size)"]
        }
        // Processes that have a file open keep the content that they read. It is compared when the replica is opened again.
        guard !mayBeInUse || !open.isOpen(number) else { return [] }
        if length != inode.size {
            // A crash may have interrupted a truncation, which the kernel requests again.
            let found = length == 0 ? [] : try setAside(name, because: "it has \(length) bytes and not \(inode.size)")
            if length == 0 { try contents.remove(number) }
            try db.dropContent(of: number)
            return found
        }
        if let lastSync, inode.content == .materialized, !isUnsent,
            Self.isWrittenWithoutRow(modifiedAt: status.modifiedAt, row: inode.modifiedAt, after: lastSync),
            try db.isContentDurable(number)
        {
            let found = try setAside(
                name, because: "something was written to it before the power cut, and not recorded")
            try db.dropContent(of: number)
            return found
        }
        if inode.content == .materialized, inode.localBytes == 0, inode.size > 0, !isUnsent {
            try contents.remove(number)
            try db.dropContent(of: number)
        }
        return []
    }

    /// Whether the kernel has written to a content file that was synced, and a power cut has taken the row that says so. Such content
    /// may have as many bytes as before.
    static func isWrittenWithoutRow(
        modifiedAt: FileTimestamp, row: FileTimestamp, after lastSync: FileTimestamp
    ) -> Bool {
        guard modifiedAt > lastSync else { return false }
        // A program may have set the time, with a row that says so. The remote or this file system may keep whole seconds of it, or
        // every second one.
        let difference = modifiedAt.nanosecondsSince1970.saturatingSubtract(row.nanosecondsSince1970)
        return !(-2_000_000_000...2_000_000_000).contains(difference)
    }

    /// The row of a file, if its content file has the length that the row says, or may have another.
    fileprivate func agreeingRow(_ number: InodeNumber, in db: Database) throws -> InodeRecord? {
        guard let inode = try db.inode(number) else { return nil }
        guard inode.content == .materialized, inode.contentStamp == nil, inode.size > 0 else { return inode }
        return (try? contents.status(of: number).size) == inode.size ? inode : nil
    }

    /// Whether an unsent file of an item that the remote knows may be shorter than its row because bytes are missing. SIGKILL takes
    /// no bytes: it leaves a truncation whose row was not written.
    static func missesBytes(_ number: InodeNumber, length: Int64, of size: Int64, in db: Database) throws -> Bool {
        guard length < size, try db.item(ofInode: number)?.isKnownToRemote == true else { return false }
        return try DomainKey.mayMissBytes.bytes(in: db) != nil || DomainKey.isRebuilt.bytes(in: db) != nil
    }

    func setAside(_ name: FilePath.Component, because reason: String) throws -> [String] {
        do {
            let place = try contents.quarantine(fileNamed: name, stamp: stamp)
            withdrawals?.ifNotCommitted { [contents] in try? place.move(to: contents.directory.appending(name)) }
            return ["'contents/\(name.string)' was moved to '\(place)': \(reason)"]
        } catch Errno.noSuchFileOrDirectory {
            // It was removed meanwhile.
            return []
        }
    }

    /// Bytes that are gone are not sent as an empty file: a new item cannot be sent, and one that the remote has is
    /// fetched again.
    private func loseContent(of number: InodeNumber, in db: Database) throws {
        try db.forgetChangedContent(of: number)
        try db.recordFailure(
            FileProviderError(.cannotSynchronize, "its content is not on this machine's disk any more"), of: number,
            at: FileTimestamp.now)
    }
}

extension Replica {
    /// Whether the comparison of all content files after a power cut has not ended.
    package var mayHaveDoubtfulContent: Bool { lastSync.withLock { $0 != nil } }

    /// Whether a power cut may have taken the row that says that something was written to a content file. False once all content
    /// files have been compared.
    package func isDoubtful(_ status: ContentStatus, _ inode: InodeRecord) -> Bool {
        guard inode.content == .materialized, let time = lastSync.withLock({ $0 }),
            ContentVerification.isWrittenWithoutRow(modifiedAt: status.modifiedAt, row: inode.modifiedAt, after: time)
        else { return false }
        return (try? database.query { db in try db.isContentDurable(inode.number) }) ?? true
    }

    /// Verifies the content file of a file that is missing, has another length than its row, or is doubtful, before the comparison of
    /// all files reaches it.
    ///
    /// - Parameter mayBeInUse: false if no process has seen content of the file or may write to it, although it is being opened, or if
    ///   it is partial.
    /// - Returns: the row after that; nil where it is gone, or still says another length.
    package func verifyContent(
        of number: InodeNumber, mayBeInUse: Bool, open: any OpenInodes
    ) throws -> InodeRecord? {
        let verification = ContentVerification(contents: contents, open: open)
        let lastSync = lastSync.withLock { $0 }
        let (row, found) = try database.write { db -> (InodeRecord?, [String]) in
            let found = try verification.verify(number, mayBeInUse: mayBeInUse, after: lastSync, in: db)
            return (try verification.agreeingRow(number, in: db), found)
        }
        recovered.withLock { $0 += found }
        try database.keep(findings: found, at: FileTimestamp.now)
        return row
    }
}
