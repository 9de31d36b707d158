import Control
import FileNames
import Foundation
import Syscalls
import SystemPackage

/// The folder in which a removal keeps data. It is filled in a directory of its own inside it and published when all is there, so
/// that nothing that others have put into the folder is touched.
final class KeptFolder {
    let path: FilePath
    /// Where everything is put before it is published.
    let work: FilePath
    private let lock: FileLock

    /// Creates the folder if it does not exist. What an interrupted removal has left in it is removed.
    ///
    /// - Throws: `failed` if it is not empty, if another removal fills it, or if nothing can be kept there.
    init(at path: FilePath) throws {
        self.path = path
        work = path.appending(Self.prefix + UUID().uuidString)
        lock = try Self.begin(work, in: path)
    }

    /// The folder of a removal that was decided on, and cut short: all is in `work`, or in its place.
    init(at path: FilePath, resuming work: FilePath) throws {
        self.path = path
        self.work = work
        lock = try FileLock(at: work.appending(Self.lockName))
    }

    /// Finds out whether data can be kept in a folder, before anything is done.
    ///
    /// - Throws: as ``init(at:)``.
    static func check(_ path: FilePath) throws {
        var missing: [FilePath] = []
        var directory = path
        while (try? FileStatus(following: directory)) == nil {
            missing.append(directory)
            guard directory.removeLastComponent(), !directory.isEmpty else { break }
        }
        // The removal may still be refused, or have nothing to keep.
        defer { for made in missing { try? made.removeDirectory() } }
        try KeptFolder(at: path).discard()
    }

    /// Gives everything its place in the folder, `files` first and the manifest last. Precondition: it is on the disk.
    ///
    /// - Throws: `failed` if something else has come into the folder; `Errno`. Nothing is published then.
    func publish() throws {
        let from = try FileDescriptor.openDirectory(work)
        defer { try? from.close() }
        let to = try FileDescriptor.openDirectory(path)
        defer { try? to.close() }
        var published: [String] = []
        do {
            for name in Self.names where try from.hasName(name) {
                try from.move(name, toNewNameIn: to)
                published.append(name)
            }
            try to.synchronize(asDirectory: true)
        } catch {
            for name in published.reversed() { try? to.move(name, toNewNameIn: from) }
            if error as? Errno == .fileExists { throw Self.notEmpty(path) }
            throw error
        }
        discard()
    }

    /// Removes what was not published.
    func discard() { try? Self.remove(work) }

    private static let prefix = ".yonder-keeping-"
    private static let lockName = "lock"
    private static let names = ["files", "trash", "recovered", "manifest.json"]

    private static func notEmpty(_ path: FilePath) -> ControlError {
        ControlError(.failed, "it is not empty", path: path.fileNameText)
    }

    private static func begin(_ work: FilePath, in path: FilePath) throws -> FileLock {
        do {
            if let there = try? FileStatus(following: path), there.kind != .directory {
                throw ControlError(.failed, "it is not a directory", path: path.fileNameText)
            }
            try path.makeDirectories()
            try empty(path)
            try work.makeDirectory()
            return try FileLock(at: work.appending(lockName))
        } catch let error as ControlError {
            throw error
        } catch {
            throw ControlError(.failed, "cannot keep anything there: \(error.reason)", path: path.fileNameText)
        }
    }

    /// Whether a name is that of a directory that a removal has filled. One that was killed just after it had made the directory, or
    /// when it had nearly removed it, has left it empty.
    private static func isOwn(_ name: String, in path: FilePath) -> Bool {
        let work = path.appending(name)
        guard name.hasPrefix(prefix), UUID(uuidString: String(name.dropFirst(prefix.count))) != nil,
            (try? FileStatus(at: work).kind) == .directory, let directory = try? FileDescriptor.openDirectory(work)
        else { return false }
        defer { try? directory.close() }
        let isLocked = (try? FileStatus(of: lockName, in: directory).kind) == .regular
        return isLocked || (try? directory.names().isEmpty) == true
    }

    private static func isInUse(_ work: FilePath) -> Bool {
        do throws(Errno) {
            _ = try FileLock(at: work.appending(lockName))
            return false
        } catch {
            return error == .wouldBlock
        }
    }

    /// FileManager takes no path that is not UTF-8: its folder is named by a descriptor.
    private static func remove(_ work: FilePath) throws {
        let folder = try FileDescriptor.openDirectory(work.removingLastComponent())
        defer { try? folder.close() }
        let place = "/proc/self/fd/\(folder.rawValue)/\(work.lastComponent?.string ?? "")"
        // The lock goes last: without it the rest would be taken for the user's.
        for name in try FileManager.default.contentsOfDirectory(atPath: place) where name != lockName {
            try FileManager.default.removeItem(atPath: place + "/" + name)
        }
        try FileManager.default.removeItem(atPath: place)
    }

    private static func empty(_ path: FilePath) throws {
        let directory = try FileDescriptor.openDirectory(path)
        defer { try? directory.close() }
        let names = try directory.names().map { FileNameText.text(of: $0) }
        guard names.allSatisfy({ isOwn($0, in: path) }) else { throw notEmpty(path) }
        for name in names {
            let left = path.appending(name)
            if (try? left.removeDirectory()) != nil { continue }
            if isInUse(left) {
                throw ControlError(.failed, "another removal keeps its data there", path: path.fileNameText)
            }
            try remove(left)
        }
    }
}

extension FileDescriptor {
    fileprivate func hasName(_ name: String) throws -> Bool {
        do {
            _ = try FileStatus(of: name, in: self)
            return true
        } catch Errno.noSuchFileOrDirectory {
            return false
        }
    }

    /// Moves a name of this directory to another, which must not have it. Where the file system cannot do that in one step,
    /// it is looked for first.
    fileprivate func move(_ name: String, toNewNameIn directory: FileDescriptor) throws {
        do {
            try renameNew(name, to: name, in: directory)
        } catch Errno.invalidArgument {
            guard try !directory.hasName(name) else { throw Errno.fileExists }
            try rename(name, to: name, in: directory)
        }
    }
}
