import Syscalls
import SystemPackage

/// The local bytes: a sparse file per inode, named by its number, beside a folder for what does not fit.
///
/// It knows nothing of what the database says; ``Replica`` keeps the two in step.
struct ContentStore: Sendable {
    let directory: FilePath
    let recovered: FilePath

    init(in domainDirectory: FilePath) throws(Errno) {
        directory = domainDirectory.appending("contents")
        recovered = domainDirectory.appending("recovered")
        try directory.makeDirectory()
        try recovered.makeDirectory()
    }

    func path(of number: InodeNumber) -> FilePath {
        directory.appending(String(number.rawValue))
    }

    /// Opens an inode's content file.
    func open(_ number: InodeNumber, _ mode: FileDescriptor.AccessMode) throws -> FileDescriptor {
        try FileDescriptor.open(path(of: number), mode, options: [.closeOnExec, .noFollow])
    }

    /// Makes a new content file, all hole, in place of one that may be there.
    func create(_ number: InodeNumber, size: Int64) throws -> FileDescriptor {
        let path = path(of: number)
        try path.unlinkIfPresent()
        let descriptor = try FileDescriptor.open(
            path, .readWrite, options: [.create, .exclusiveCreate, .closeOnExec, .noFollow],
            permissions: .ownerReadWrite)
        do {
            try descriptor.setLength(size)
        } catch {
            try? descriptor.close()
            throw error
        }
        return descriptor
    }

    func remove(_ number: InodeNumber) throws(Errno) {
        try path(of: number).unlinkIfPresent()
    }

    /// Moves a file that fits no row to the recovered folder, under a name that is free there.
    ///
    /// - Returns: where it lies now.
    func quarantine(fileNamed name: FilePath.Component, stamp: Int64) throws -> FilePath {
        let destination = recovered.appending("\(name.string)-\(stamp)")
        try directory.appending(name).move(to: destination)
        return destination
    }
}
