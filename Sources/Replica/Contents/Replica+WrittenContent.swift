import FileProvider
import Syscalls
import SystemPackage

/// What a content file says of itself: the truth about a file while it is being written.
package struct ContentStatus: Hashable, Sendable {
    package var size: Int64
    /// Room on the disk in bytes.
    package var allocated: Int64
    package var modifiedAt: FileTimestamp
    package var changedAt: FileTimestamp
    /// What tells this state of the file from others.
    package var stamp: Int64
}

/// The content files of what is written here.
extension Replica {
    /// The stamp of a file that may be written again without its stamp changing.
    package static let unknownStamp = ContentStamp.unknown

    /// A descriptor for reading and writing a file's local content; the caller's to close.
    package func openContentForWriting(of number: InodeNumber) throws -> FileDescriptor {
        try contents.open(number, .readWrite)
    }

    /// - Throws: `Errno`; ENOENT for what has no content here.
    package func contentStatus(of number: InodeNumber) throws(Errno) -> ContentStatus {
        let status = try contents.status(of: number)
        return ContentStatus(
            size: status.size, allocated: status.allocated, modifiedAt: status.modifiedAt,
            changedAt: status.changedAt, stamp: contents.stamp(of: status))
    }

    /// A file without a name on the disk of the contents, open for reading and writing: it goes with its descriptor, which
    /// is the caller's to close.
    package func makeScratchFile() throws(Errno) -> FileDescriptor {
        let directory = try FileDescriptor.openDirectory(contents.directory)
        defer { try? directory.close() }
        return try directory.makeNamelessFile(permissions: 0o600)
    }

    /// Puts a file's content, and all that the database says, on the disk.
    package func synchronizeContent(of number: InodeNumber) throws {
        if let file = try? contents.open(number, .readOnly) {
            defer { try? file.close() }
            try file.synchronize()
        }
        try synchronize()
    }
}
