import SystemPackage

/// Why nothing can be mounted on this machine, and what to do about it.
package struct MountObstacle: Hashable, Sendable {
    /// The file that is the obstacle.
    package let subject: String
    package let reason: String
    package let advice: String

    /// That of the device through which the kernel is answered; nil if it can be opened.
    ///
    /// - Parameter root: the root of the file system; another one in tests.
    package static func ofDevice(root: FilePath = "/") -> MountObstacle? {
        do {
            try FileDescriptor.open(root.appending("dev/fuse"), .readWrite, options: .closeOnExec).close()
            return nil
        } catch {
            let isMissing = error as? Errno == .noSuchFileOrDirectory
            return MountObstacle(
                subject: "/dev/fuse",
                reason: isMissing
                    ? "it does not exist, so nothing can be mounted" : "it cannot be opened, so nothing can be mounted",
                advice: error as? Errno == .permissionDenied
                    ? "as root: chmod 666 /dev/fuse"
                    : "as root: modprobe fuse; in a container: --device /dev/fuse --cap-add SYS_ADMIN")
        }
    }

    /// In one line.
    package var text: String { "\(subject): \(reason) (\(advice))" }
}
