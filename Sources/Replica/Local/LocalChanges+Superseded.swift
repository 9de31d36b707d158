import FileProvider
import Foundation
import GRDB
import Syscalls

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

extension LocalChanges {
    /// What was written to a version that the remote has replaced becomes a conflict copy beside the present one: a process
    /// had the old version open, and wrote after the news.
    mutating func keepIfSuperseded(_ number: InodeNumber) throws {
        guard try inode(number).linkCount == 0, let place = try db.place(ofSuperseded: number) else { return }
        guard mayChangeNames else { throw NamesNeeded() }
        var parent = place.parent
        if try db.item(ofInode: parent)?.inode.kind != .directory { parent = .root }
        let name = try db.freeName(for: place.name, label: Replica.conflictLabel(), in: parent)
        try db.insertConflictCopy(of: number, original: place.name, named: name, in: parent, at: now)
        try db.link(number, at: now)
        try db.forgetNameless(number)
        try touch(parent)
        tellKernelOfName(name, in: parent)
        tellKernel(.attributes(number))
        effects.defects.append(
            "'\(place.name)' was changed here and on the remote: what was written here is '\(name)'")
    }
}
