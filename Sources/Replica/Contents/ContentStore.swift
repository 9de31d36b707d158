import FileProvider
import Syscalls
import SystemPackage

/// The content files: a sparse file for each inode, named by its number; a folder for files that fit no row; and a folder for
/// files whose transaction is not committed.
///
/// It knows nothing of what the database says; ``Replica`` keeps the two in step.
struct ContentStore: Sendable {
    let directory: FilePath
    let recovered: FilePath
    let withdrawn: FilePath
    /// The folder of the content files, open: with a path, the kernel walks down to it for each call.
    private let folder: OwnedDescriptor
    /// For how long the file system may give a file the same change time, in nanoseconds; 0 if each write gives it a new one.
    private let coarseness: Int64

    init(in domainDirectory: FilePath) throws(Errno) {
        directory = domainDirectory.appending(WithdrawnFiles.contentDirectory)
        recovered = domainDirectory.appending(RebuiltDatabase.recovered)
        withdrawn = domainDirectory.appending(WithdrawnFiles.directory)
        try directory.makeDirectory()
        try recovered.makeDirectory()
        try withdrawn.makeDirectory()
        folder = OwnedDescriptor(try FileDescriptor.openDirectory(directory))
        coarseness = (try? Self.probeStamps(in: directory)) ?? Self.coarsestTime
    }

    func path(of number: InodeNumber) -> FilePath {
        directory.appending(String(number.rawValue))
    }

    func open(_ number: InodeNumber, _ mode: FileDescriptor.AccessMode) throws -> FileDescriptor {
        try folder.use { try $0.openFile(named: String(number.rawValue), for: mode) }
    }

    /// Makes a new content file, all hole, in place of one that may be there.
    ///
    /// - Parameter isFirst: whether the row has had no content file: then one that is there belongs to no row, and is set aside.
    func create(_ number: InodeNumber, size: Int64, isFirst: Bool = false) throws -> FileDescriptor {
        func make() throws -> FileDescriptor {
            try folder.use { try $0.makeFile(named: String(number.rawValue), permissions: 0o600) }
        }
        let descriptor: FileDescriptor
        do {
            descriptor = try make()
        } catch Errno.fileExists {
            let path = path(of: number)
            if isFirst, let name = path.lastComponent, try !holdsNothing(number) {
                _ = try quarantine(fileNamed: name, stamp: FileTimestamp.now.nanosecondsSince1970)
            }
            try path.unlinkIfPresent()
            descriptor = try make()
        }
        do {
            if size > 0 { try descriptor.setLength(size) }
        } catch {
            try? descriptor.close()
            throw error
        }
        return descriptor
    }

    func remove(_ number: InodeNumber) throws(Errno) {
        try path(of: number).unlinkIfPresent()
    }

    /// Whether a content file that fits no row holds nothing that a program has written: it is empty or all hole, or it says where a
    /// trashed item was. The transaction that made it was not committed.
    func holdsNothing(_ number: InodeNumber) throws -> Bool {
        let status = try FileStatus(at: path(of: number))
        guard status.kind == .regular, status.size > 0 else { return status.kind == .regular }
        let file = try open(number, .readOnly)
        defer { try? file.close() }
        do throws(Errno) {
            _ = try file.seek(to: .data, from: 0)
        } catch {
            // A file system without SEEK_DATA has another errno.
            if error == .noSuchAddressOrDevice { return true }
        }
        guard status.size <= TrashInformation.longest else { return false }
        return TrashInformation.isText(try file.readBytes(at: 0, count: Int(status.size)))
    }

    /// Moves a file that fits no row to the recovered folder, under a name that is free there.
    ///
    /// - Returns: where it lies now.
    func quarantine(fileNamed name: FilePath.Component, stamp: Int64) throws -> FilePath {
        let destination = try recoveredPlace(of: name.string, stamp: stamp)
        try directory.appending(name).move(to: destination)
        return destination
    }

    /// A name that is free in the recovered folder. The user may have removed the folder.
    private func recoveredPlace(of name: String, stamp: Int64) throws(Errno) -> FilePath {
        try recovered.makeDirectory()
        var place = recovered.appending("\(name)-\(stamp)")
        var attempt = 1
        while (try? FileStatus(at: place)) != nil {
            attempt += 1
            place = recovered.appending("\(name)-\(stamp)-\(attempt)")
        }
        return place
    }

    /// Takes an inode's content file away from a process that has it open for writing, which goes on writing into the
    /// recovered folder.
    ///
    /// - Returns: where that file lies now.
    func takeAway(_ number: InodeNumber, stamp: Int64) throws -> FilePath {
        try recovered.makeDirectory()
        let destination = recovered.appending("\(number)-\(stamp)")
        try FileTaking.leave(path(of: number), to: destination)
        return destination
    }

    /// Puts a copy of a content file into the recovered folder.
    ///
    /// - Parameter mayLink: whether it is another name of the file where that can be.
    /// - Returns: where it lies; nil when the file is empty.
    /// - Throws: ``TakingError`` when the file is changed meanwhile; what the disk says.
    func keep(_ number: InodeNumber, stamp: Int64, mayLink: Bool = true) throws -> FilePath? {
        let file = path(of: number)
        guard try FileStatus(at: file).size > 0 else { return nil }
        let destination = try recoveredPlace(of: number.description, stamp: stamp)
        try FileTaking.take(file, to: destination, mayLink: mayLink)
        return destination
    }

    // MARK: - Written files

    func status(of number: InodeNumber) throws(Errno) -> ContentStatus {
        let status = try fileStatus(of: number)
        let changedAt = FileTimestamp(status.changed)
        return ContentStatus(
            size: status.size, allocated: status.allocated, modifiedAt: FileTimestamp(status.modified),
            changedAt: changedAt, stamp: stamp(ofChangeAt: changedAt))
    }

    /// What a later stamp is compared with. If the file system's change times are coarse, one that has just been given may
    /// be given again, and is not reliable.
    private func stamp(ofChangeAt time: FileTimestamp) -> Int64 {
        let stamp = time.nanosecondsSince1970
        if coarseness == 0 { return stamp }
        let age = FileTimestamp.now.nanosecondsSince1970.saturatingSubtract(stamp)
        // A time in the future is from before the clock was set back: a write now gives another one.
        return (-coarseness..<coarseness).contains(age) ? ContentStamp.unknown : stamp
    }

    /// Whether an inode's content file is there, and is a file.
    func hasFile(_ number: InodeNumber) -> Bool {
        (try? fileStatus(of: number).kind) == .regular
    }

    private func fileStatus(of number: InodeNumber) throws(Errno) -> FileStatus {
        try folder.use { (folder) throws(Errno) in try FileStatus(of: String(number.rawValue), in: folder) }
    }

    func setModificationTime(of number: InodeNumber, to time: FileTimestamp) throws(Errno) {
        let moment = FileMoment(seconds: time.seconds, nanoseconds: time.nanoseconds)
        guard try fileStatus(of: number).modified != moment else { return }
        try folder.use { (folder) throws(Errno) in try folder.setModified(moment, of: String(number.rawValue)) }
    }

    func setLength(of number: InodeNumber, to length: Int64) throws {
        let file = try open(number, .readWrite)
        defer { try? file.close() }
        try file.setLength(length)
    }

    /// The kernel's clock for times of files ticks at least so often.
    private static let coarsestClock: Int64 = 50_000_000
    /// File systems that keep whole seconds, as ext4 with inodes of 128 bytes, or every second one, as FAT.
    private static let coarsestTime: Int64 = 2_050_000_000

    private static func probeStamps(in directory: FilePath) throws -> Int64 {
        let path = directory.appending(".probe")
        let file = try FileDescriptor.open(
            path, .readWrite, options: [.create, .truncate, .closeOnExec], permissions: .ownerReadWrite)
        defer {
            try? file.close()
            try? path.unlinkIfPresent()
        }
        for _ in 0..<4 {
            let before = try FileStatus(of: file).changed
            try file.writeAll([0].span.bytes, at: 0)
            let after = try FileStatus(of: file).changed
            if after != before { continue }
            return after.nanoseconds == 0 ? coarsestTime : coarsestClock
        }
        return 0
    }
}

/// The state of a content file: the truth about a file while it is being written.
package struct ContentStatus: Hashable, Sendable {
    package var size: Int64
    /// Allocated space in bytes.
    package var allocated: Int64
    package var modifiedAt: FileTimestamp
    package var changedAt: FileTimestamp
    /// Differs from that of any other state of the file.
    package var stamp: Int64

    /// Whether the file takes another number of blocks than its size fills, in the usual unit of 4 KiB.
    var hasUnusualAllocation: Bool { ContentSize.isUnusual(allocated, for: size) }
}

extension FileTimestamp {
    init(_ moment: FileMoment) {
        self.init(seconds: moment.seconds, nanoseconds: moment.nanoseconds)
    }
}
