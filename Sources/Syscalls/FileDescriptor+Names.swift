import CSyscalls
import Glibc
import SystemPackage

/// Names in an open directory, encoded by ``FileNameText``. No function follows a symbolic link in the last
/// component.
extension FileDescriptor {
    /// Opens a directory as a base for other calls. (open with O_PATH)
    package static func openDirectory(_ path: FilePath) throws(Errno) -> FileDescriptor {
        try openAt(AT_FDCWD, path: path.cPath, yonder_open_path | O_DIRECTORY)
    }

    /// Opens a subdirectory as a base for other calls; ENOTDIR for a link. (openat with O_PATH)
    package func openDirectory(named name: String) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, name, yonder_open_path | O_DIRECTORY | O_NOFOLLOW)
    }

    /// Opens a file for reading. Does not wait for the writer of a FIFO. (openat)
    package func openFile(named name: String) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    }

    /// Opens a file. Waits for the other end of a FIFO. (openat)
    package func openFile(named name: String, for access: AccessMode) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, name, access.rawValue | O_NOFOLLOW)
    }

    /// The names in this directory, as bytes, in no order, without `.` and `..`. (readdir)
    package func names() throws(Errno) -> [[UInt8]] {
        let stream = try DirectoryStream(of: self)
        var names: [[UInt8]] = []
        while let name = try stream.next() { names.append(name) }
        return names
    }

    /// The target of a symbolic link as bytes. (readlinkat)
    package func linkTarget(named name: String) throws(Errno) -> [UInt8] {
        let path = cName(name)
        var capacity = 256
        while true {
            var length = 0
            let target = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
                length = buffer.withMemoryRebound(to: CChar.self) {
                    readlinkat(rawValue, path, $0.baseAddress!, capacity)
                }
                count = max(0, length)
            }
            if length < 0 { throw Errno.current }
            if length < capacity { return target }
            capacity *= 4
        }
    }

    /// The readable extended attributes of a name in this directory by full name, encoded by ``FileNameText``; none if the
    /// file system does not support them. (llistxattr, lgetxattr)
    ///
    /// - Parameter isWanted: selects attributes by name.
    package func extendedAttributes(
        named name: String, where isWanted: (String) -> Bool = { _ in true }
    ) -> [String: [UInt8]] {
        let path = cName("/proc/self/fd/\(rawValue)/\(name)")
        guard let list = Self.bytes({ yonder_llistxattr(path, $0, $1) }) else { return [:] }
        return Self.attributes(named: list, where: isWanted) { attribute in
            Self.bytes { yonder_lgetxattr(path, attribute, $0, $1) }
        }
    }

    /// Whether the file is on a network file system, where inotify reports only changes by this machine.
    package var isOnNetworkFileSystem: Bool {
        let networked: Set<Int64> = [
            0x6969, 0xFF53_4D42, 0xFE53_4D42, 0x517B, 0x0102_1997, 0x00C3_6400, 0x6573_5546, 0x5346_414F,
        ]
        return networked.contains(yonder_file_system_type(rawValue))
    }

    /// - Parameter name: encoded by ``FileNameText``.
    static func openAt(
        _ directory: Int32, _ name: String, _ flags: Int32, _ permissions: UInt16 = 0
    ) throws(Errno) -> FileDescriptor {
        try openAt(directory, path: cName(name), flags, permissions)
    }

    private static func openAt(
        _ directory: Int32, path: [CChar], _ flags: Int32, _ permissions: UInt16 = 0
    ) throws(Errno) -> FileDescriptor {
        while true {
            let descriptor = openat(directory, path, flags | O_CLOEXEC, mode_t(permissions))
            if descriptor >= 0 { return FileDescriptor(rawValue: descriptor) }
            guard Errno.current == .interrupted else { throw Errno.current }
        }
    }

    /// Calls a function that fills a buffer, with a buffer of the size that it reports. Nil if it fails.
    static func bytes(_ call: (UnsafeMutablePointer<CChar>?, Int) -> Int) -> [UInt8]? {
        for _ in 0..<8 {
            let size = call(nil, 0)
            guard size > 0 else { return size == 0 ? [] : nil }
            var got = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                got = buffer.withMemoryRebound(to: CChar.self) { call($0.baseAddress, size) }
                count = max(0, got)
            }
            if got >= 0 { return bytes }
            // The value has grown between the calls.
            guard Errno.current == .outOfRange else { return nil }
        }
        return nil
    }
}
