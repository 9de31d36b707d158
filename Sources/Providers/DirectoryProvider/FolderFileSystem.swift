import FileProvider
import Syscalls
import SystemPackage

/// File systems on which files are not known again by their inode numbers. A folder knows its items by them: on these an item could
/// be taken for another one, and the wrong file be changed or deleted.
enum FolderFileSystem {
    /// - Parameters:
    ///   - path: the folder, with symbolic links resolved.
    ///   - table: nil where it cannot be read.
    /// - Throws: `serverUnreachable`, with another way to mount the folder.
    static func check(_ path: FilePath, in table: MountTable? = try? MountTable()) throws(FileProviderError) {
        guard let mount = table?.mount(containing: path.fileNameText), let remedy = remedy(for: mount.type, path)
        else {
            return
        }
        throw FileProviderError(
            .serverUnreachable,
            "the source '\(path)' is on a file system (\(mount.type)) that does not keep the inode numbers of files, so one file could "
                + "be taken for another: \(remedy)")
    }

    /// What is wrong with the file system of a device that is mounted below the folder; nil if it can be used.
    static func defect(
        of device: UInt64, named name: String, in table: MountTable? = try? MountTable()
    ) -> FileProviderError? {
        guard let mount = table?.mounts.last(where: { $0.deviceNumber == device }),
            let remedy = remedy(for: mount.type, mount.filePath)
        else { return nil }
        return FileProviderError(
            .ubiquitousFileUnavailable,
            "'\(name)' in the source is a file system (\(mount.type)) that does not keep the inode numbers of files, so one file could be "
                + "taken for another: \(remedy)", errno: .notSupported)
    }

    /// What to do with a folder; nil where it can be mounted.
    static func remedy(for type: String, _ path: FilePath) -> String? {
        switch type {
        case "vfat", "msdos", "exfat", "fuse.exfat", "fuse.curlftpfs", "fuse.s3fs", "fuse.gvfsd-fuse":
            "mount it by its paths, as 'rclone::local:\(path)'"
        case "fuse.sshfs": "mount 'sftp://[USER@]HOST/PATH' instead"
        case "fuse.rclone": "mount 'rclone:REMOTE:PATH' instead"
        default: nil
        }
    }
}
