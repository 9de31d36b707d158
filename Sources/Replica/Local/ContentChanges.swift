import FileProvider
import Foundation
import Syscalls
import SystemPackage

/// Changes of the content of files.
///
/// The kernel writes into content files by itself. So a row is marked with its file's stamp before an open for writing is
/// granted, and compared when the last writer has closed, at the next start, and whenever the state of the file is asked for.
package struct ContentChanges: LocalPart {
    let transaction: LocalTransaction

    /// Prepares a file for being written.
    ///
    /// - Throws: ``LocalObstacle``: EACCES; the content has to be here whole, unless it is to be truncated.
    package func beginWriting(_ number: InodeNumber, truncating: Bool, caller: LocalCaller) throws {
        var file = try changeable(number)
        guard file.inode.kind == .file else { throw LocalObstacle.refused(.invalidArgument) }
        guard file.allowsWriting else { throw LocalObstacle.refused(.permissionDenied) }
        if truncating {
            try truncate(number, to: 0, caller: caller)
            file = try changeable(number)
        }
        guard file.inode.content == .materialized else { throw LocalObstacle.content(of: number) }
        if !file.hasContentFile { try makeEmptyContent(of: number) }
        guard file.inode.contentStamp == nil else { return }
        try contents.setModificationTime(of: number, to: file.inode.modifiedAt)
        try db.setContentStamp(of: number, to: contents.status(of: number).stamp)
    }

    /// The last writer has closed a file: what it did is recorded, and the mark goes. Nothing can be recorded of a file whose content
    /// file is missing: its next open finds that.
    package func endWriting(_ number: InodeNumber) throws {
        do {
            try compareContent(number, takingMark: true)
        } catch Errno.noSuchFileOrDirectory {
            let words = try db.item(ofInode: number).map { "'\($0.name)'" } ?? "inode \(number)"
            report("what was written to \(words) is lost: its content file is not in its place any more")
            try db.setContentStamp(of: number, to: nil)
        }
    }

    /// Sets a file's length.
    ///
    /// - Throws: ``LocalObstacle``: EISDIR, EINVAL, EACCES, EFBIG, ENOSPC; the content has to be here whole, unless the
    ///   length is 0.
    package func truncate(_ number: InodeNumber, to size: Int64, caller: LocalCaller) throws {
        let file = try changeable(number)
        switch file.inode.kind {
        case .file: break
        case .directory: throw LocalObstacle.refused(.isDirectory)
        default: throw LocalObstacle.refused(.invalidArgument)
        }
        guard size >= 0 else { throw LocalObstacle.refused(.invalidArgument) }
        guard file.allowsWriting else { throw LocalObstacle.refused(.permissionDenied) }
        if size == 0, file.inode.content != .materialized || !file.hasContentFile {
            try makeEmptyContent(of: number)
        } else {
            guard file.inode.content == .materialized else { throw LocalObstacle.content(of: number) }
            if !file.hasContentFile { try makeEmptyContent(of: number) }
            try transaction.withdrawals?.setLength(of: number, to: size) ?? contents.setLength(of: number, to: size)
        }
        try contentWasWritten(number)
        try clearSetID(of: number, caller: caller)
        try AccessControl(transaction: transaction).takeCapabilities(of: number)
    }

    /// Records a write through the daemon into a content file.
    package func contentWasWritten(_ number: InodeNumber) throws {
        var status = try contents.status(of: number)
        // The content file's clock ticks slowly: what was written just now would seem older than what was said before.
        let known = try inode(number)
        let isMarked = known.contentStamp != nil
        if status.modifiedAt <= known.modifiedAt, known.modifiedAt <= now {
            try contents.setModificationTime(of: number, to: now)
            status = try contents.status(of: number)
        }
        try db.recordWriting(
            of: number, status, modifiedAt: status.modifiedAt, changedAt: now, stamp: isMarked ? status.stamp : nil)
        try mark([.contents, .contentModificationDate], of: number)
        try keepIfSuperseded(known)
    }

    /// Clears the set-ID bits after a write, or after a change of owner that changes none.
    ///
    /// - Parameters:
    ///   - isWriting: every process that may write may do it; else only the owner, when there is a bit to clear.
    ///   - usualOwner: whose files are that do not say so.
    /// - Throws: ``LocalObstacle``: EPERM.
    package func takeSetID(
        of number: InodeNumber, caller: LocalCaller, isWriting: Bool, usualOwner: UInt32
    ) throws -> InodeRecord {
        let record = try inode(number)
        try checkMayChange(record)
        if let cleared = record.permissions(afterChangeBy: caller) {
            guard isWriting || caller.isPrivileged || caller.user == record.owner ?? usualOwner else {
                throw LocalObstacle.refused(.notPermitted)
            }
            try db.setPermissions(of: number, to: cleared)
            try mark(.permissions, of: number)
        }
        try setChangeTime(of: number)
        return try inode(number)
    }

    /// Clears the set-ID bits that a write by an ordinary user clears.
    package func clearSetID(of number: InodeNumber, caller: LocalCaller) throws {
        guard !caller.isPrivileged, let cleared = try inode(number).permissions(afterChangeBy: caller) else { return }
        try db.setPermissions(of: number, to: cleared)
        try mark(.permissions, of: number)
        tellKernel([.attributes(number)])
    }

    /// Finds out whether a marked file was written since it was compared last.
    package func compareContent(_ number: InodeNumber) throws { try compareContent(number, takingMark: false) }

    private func compareContent(_ number: InodeNumber, takingMark: Bool) throws {
        guard let file = try db.inode(number), let stamp = file.contentStamp else { return }
        let status = try contents.status(of: number)
        let present = status.stamp
        guard stamp == ContentStamp.unknown || stamp != present || status.size != file.size else {
            if takingMark { try db.setContentStamp(of: number, to: nil) }
            return
        }
        try db.recordWriting(
            of: number, status, modifiedAt: file.modificationTime(afterWritingAt: status.modifiedAt),
            changedAt: file.changeTime(afterWritingAt: status.changedAt), stamp: takingMark ? nil : present)
        try mark([.contents, .contentModificationDate], of: number)
        // Of a file that was made for writing the kernel has never been told anything else.
        if stamp != ContentStamp.unknown { tellKernel([.attributes(number)]) }
        try keepIfSuperseded(file)
    }

    /// A content file that cannot be examined may have been written.
    package func noteUnexamined(_ number: InodeNumber) throws {
        guard try db.item(ofInode: number)?.changedFields.contains(.contents) == false else { return }
        try mark(.contents, of: number)
    }

    /// Keeps the content file's time the same as the row's, so that only writing makes them differ.
    ///
    /// Precondition: it has one, which was compared. That of a file that is open for writing is left alone: the kernel may have
    /// written back a mapping since the comparison, which only the file's change time tells.
    func setContentTime(of file: InodeRecord) throws {
        guard file.kind == .file, file.content == .materialized else { return }
        // Where change times are too coarse to tell, the content counts as written, with the file's modification time.
        if let stamp = file.contentStamp, stamp != ContentStamp.unknown { return }
        try contents.setModificationTime(of: file.number, to: file.modifiedAt)
    }

    /// Begins a new, empty content in place of whatever is here.
    private func makeEmptyContent(of number: InodeNumber) throws {
        let hadFile = try db.hasContentFile(number)
        if hadFile { withdrawReplacedContent(of: try inode(number)) }
        try contents.create(number, size: 0, isFirst: !hadFile).close()
        transaction.withdrawals?.ifNotCommitted { [contents] in try? contents.remove(number) }
        try db.beginEmptyContent(of: number)
    }

    /// What was written to a version that the remote has replaced becomes a conflict copy beside the present one: a process
    /// had the old version open, and wrote after the news. One that the remote has only removed gets its name back.
    private func keepIfSuperseded(_ inode: InodeRecord) throws {
        let number = inode.number
        guard inode.linkCount == 0, let place = try db.place(ofSuperseded: number) else { return }
        guard transaction.mayChangeNames else { throw NamesNeeded() }
        // What is new has no place among the items that the trash holds itself.
        let wasTrashed = try db.trashArea(of: place.parent) == .files
        let isThere = try !wasTrashed && db.item(ofInode: place.parent)?.inode.kind == .directory
        let parent = isThere ? place.parent : .root
        let isTaken = try place.isReplaced || isThere && db.hasItem(named: place.name, in: parent)
        let name =
            isTaken
            ? try db.freeName(for: place.name, label: Replica.conflictLabel(), in: parent)
            : try db.freeName(for: place.name, in: parent)
        try db.insertConflictCopy(
            of: number, original: isTaken ? place.name : nil, named: name, in: parent, pendingSince: now)
        try db.link(number, at: now)
        try db.forgetNameless(number)
        try touch(parent)
        tellKernelOfName(name, in: parent)
        tellKernel([.attributes(number)])
        if isTaken {
            let path = try db.shownPath(place.name, in: parent)
            reportConflict(
                number,
                "conflict: '\(path)' was changed here and on the remote: what was written here is '\(name)'")
            return
        }
        noteSomethingToSend()
        guard !isThere else { return }
        let removed = wasTrashed ? "'\(place.name)' from the trash" : "the directory of '\(place.name)'"
        report(
            "the remote has removed \(removed) while it was open: what was written to it is '\(name)' in the root of the "
                + "mount")
    }
}

extension Replica {
    /// The remote lost the content that was to be kept there for a file without a name: the deletion of that content no
    /// longer waits.
    package func releaseOnRemote(_ number: InodeNumber) async throws {
        try await database.write { db in
            try db.run(
                "DELETE FROM nameless WHERE inode = ? AND reason = \(nameless: .removed)",
                [number.rawValue])
        }
    }

    /// The label in a conflict copy's name: `conflicted copy of HOST, DATE`.
    @Sendable package static func conflictLabel() -> String {
        "conflicted copy of \(Machine.hostName), \(Date.now.formatted(.iso8601.year().month().day()))"
    }
}
