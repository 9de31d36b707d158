import CSyscalls
import FileNames
import Glibc
import SystemPackage

/// Attributes of an open file, also of one opened by ``openReference(named:)``. A symbolic link has only an owner and
/// times.
extension FileDescriptor {
    /// Sets the lower twelve bits of the mode. (chmod)
    package func setPermissions(_ permissions: UInt16) throws(Errno) {
        guard chmod(processPath, mode_t(permissions)) == 0 else { throw Errno.current }
    }

    /// Sets the owner and the group. May clear the set-user-ID and set-group-ID bits. (fchownat)
    package func setOwner(_ owner: UInt32, group: UInt32) throws(Errno) {
        guard yonder_set_owner(rawValue, owner, group) == 0 else { throw Errno.current }
    }

    /// Sets the time of the last modification. (utimensat)
    package func setModified(_ moment: FileMoment) throws(Errno) {
        guard yonder_set_modified(rawValue, "", moment.seconds, moment.nanoseconds) == 0 else { throw Errno.current }
    }

    /// Sets the time of the last modification of a name in this directory. Does not follow a link. (utimensat)
    package func setModified(_ moment: FileMoment, of name: String) throws(Errno) {
        let times = FilePath.times(modified: moment)
        guard utimensat(rawValue, cName(name), times, AT_SYMLINK_NOFOLLOW) == 0 else { throw Errno.current }
    }

    /// All readable extended attributes by full name, encoded by ``FileNameText``; none if the file system does not support
    /// them. (listxattr, getxattr)
    package func extendedAttributes() -> [String: [UInt8]] {
        let path = processPath
        guard let list = Self.bytes({ yonder_listxattr(path, $0, $1) }) else { return [:] }
        return Self.attributes(named: list, where: { _ in true }) { name in
            Self.bytes { yonder_getxattr(path, name, $0, $1) }
        }
    }

    /// - Parameters:
    ///   - list: the names, each with a zero after it.
    ///   - isWanted: selects attributes by name.
    ///   - read: reads one; nil if it cannot be read.
    static func attributes(
        named list: [UInt8], where isWanted: (String) -> Bool, read: ([CChar]) -> [UInt8]?
    ) -> [String: [UInt8]] {
        var attributes: [String: [UInt8]] = [:]
        for bytes in list.split(separator: 0) {
            let name = FileNameText.text(of: bytes)
            guard isWanted(name), let value = read(cName(name)) else { continue }
            attributes[name] = value
        }
        return attributes
    }

    /// Sets an extended attribute by its full name, encoded by ``FileNameText``. (setxattr)
    package func setExtendedAttribute(_ name: String, to value: [UInt8]) throws(Errno) {
        guard yonder_setxattr(processPath, cName(name), value, value.count) == 0 else { throw Errno.current }
    }

    /// Removes an extended attribute by its full name, encoded by ``FileNameText``, if it exists. (removexattr)
    package func removeExtendedAttribute(_ name: String) throws(Errno) {
        guard yonder_removexattr(processPath, cName(name)) != 0, Errno.current != .noData else { return }
        throw Errno.current
    }
}
