import Syscalls
import SystemPackage

extension Replica {
    /// The stamp of a file that may be written again without its stamp changing.
    package static let unknownStamp = ContentStamp.unknown

    /// A descriptor for reading and writing a file's local content, on a disk that became read-only for reading alone; the caller's to
    /// close.
    package func openContentForWriting(of number: InodeNumber) throws -> FileDescriptor {
        do {
            return try contents.open(number, .readWrite)
        } catch Errno.readOnlyFileSystem {
            return try contents.open(number, .readOnly)
        }
    }

    /// - Throws: `Errno`; ENOENT for what has no content here.
    package func contentStatus(of number: InodeNumber) throws(Errno) -> ContentStatus {
        try contents.status(of: number)
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
        do {
            let file = try contents.open(number, .readOnly)
            defer { try? file.close() }
            try file.synchronize()
        } catch Errno.noSuchFileOrDirectory {
            // It has no content here.
        }
        try synchronize()
    }
}
