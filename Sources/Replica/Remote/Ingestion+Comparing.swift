import FileProvider
import GRDB

/// Which directories have to be compared with the remote, and what is known of those that were.
extension Ingestion {
    /// A directory, and for a mark of all of them each one, is what it was at this mark, or newer.
    package func noteMark(_ mark: ChangeMark?, of number: InodeNumber) throws {
        try db.setChangeMark(of: number, to: mark)
    }

    /// All below a directory is what it was when the directory had this version, or newer.
    package func noteCompared(_ number: InodeNumber, at version: [UInt8]) throws {
        try db.setComparedVersion(of: number, to: version)
    }

    /// A directory has to be compared with the remote.
    package func noteIncomplete(_ number: InodeNumber) throws {
        try db.noteIncomplete(number)
    }

    /// A directory that has to be compared is being compared now: what is noted from here on is for the next time.
    package func beginComparing(_ number: InodeNumber) throws {
        try db.beginComparing(number)
    }

    /// A directory was compared.
    package func finishComparing(_ number: InodeNumber) throws {
        try db.finishComparing(number)
    }
}
