import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// File systems that are mounted below the folder.
extension Folder {
    private var rootDevice: UInt64 { source.withLock { $0.identity.device } }

    /// Opens a subdirectory.
    ///
    /// - Throws: `ubiquitousFileUnavailable` if its file system is away, or is none that can be used; POSIX errors.
    func openDirectory(
        named name: String, in directory: FileDescriptor, _ parent: ItemIdentifier
    ) throws -> (FileDescriptor, FileStatus) {
        let (opened, status) = try openExamined(name, in: directory, parent)
        do throws(FileProviderError) {
            try mounts.checkUse(of: FolderMounts.Place(name, in: parent))
        } catch {
            try? opened.close()
            throw error
        }
        return (opened, status)
    }

    private func openExamined(
        _ name: String, in directory: FileDescriptor, _ parent: ItemIdentifier
    ) throws -> (FileDescriptor, FileStatus) {
        let opened: FileDescriptor
        do throws(Errno) {
            opened = try directory.openDirectory(named: name)
        } catch {
            try mounts.examine(error, at: FolderMounts.Place(name, in: parent))
            throw error
        }
        do {
            // What was opened, whatever is mounted there meanwhile.
            let status = try self.status(of: opened)
            if mounts.isToBeExamined(status, at: FolderMounts.Place(name, in: parent), rootDevice: rootDevice) {
                try mounts.examine(opened, status, at: FolderMounts.Place(name, in: parent), rootDevice: rootDevice)
            }
            return (opened, status)
        } catch {
            try? opened.close()
            if let error = error as? Errno { try mounts.examine(error, at: FolderMounts.Place(name, in: parent)) }
            throw error
        }
    }

    /// As ``status(of:in:)``, of a name in the folder.
    ///
    /// - Throws: `ubiquitousFileUnavailable` if a file system was seen there and is away, or does not answer; POSIX errors.
    func status(of name: String, in directory: FileDescriptor, _ parent: ItemIdentifier) throws -> FileStatus {
        let status: FileStatus
        do throws(Errno) {
            status = try self.status(of: name, in: directory)
        } catch {
            try mounts.examine(error, at: FolderMounts.Place(name, in: parent))
            throw error
        }
        guard mounts.isToBeExamined(status, at: FolderMounts.Place(name, in: parent), rootDevice: rootDevice) else {
            return status
        }
        let (opened, found) = try openExamined(name, in: directory, parent)
        try? opened.close()
        return found
    }

    /// The directories in a directory whose file systems are away, and whose names are not there either: a program that mounts disks
    /// may remove the directory of one with it.
    func missingMounts(in directory: FileDescriptor, _ container: ItemIdentifier) -> [FileProviderItem] {
        mounts.names(in: container).compactMap { name -> FileProviderItem? in
            do throws(Errno) {
                _ = try FileStatus(of: name, in: directory)
                return nil
            } catch {
                // One that does not answer has its name, and was listed with the others.
                guard error == .noSuchFileOrDirectory else { return nil }
                return (try? item(named: name, in: directory, parent: container)) ?? nil
            }
        }
    }
}
