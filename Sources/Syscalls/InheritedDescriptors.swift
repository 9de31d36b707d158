import Glibc
import SystemPackage

/// A descriptor that a service manager has passed to this process. (sd_listen_fds_with_names(3))
package struct InheritedDescriptor: Hashable, Sendable {
    package var name: String
    package var descriptor: FileDescriptor

    /// The descriptors of this process that its environment names, in order; they become close-on-exec. Must be
    /// called once, before the process opens descriptors of its own.
    package static func take(environment: [String: String]) -> [InheritedDescriptor] {
        let names = names(environment: environment, process: getpid())
        return names.enumerated().compactMap { index, name in
            let number = 3 + Int32(index)
            guard fcntl(number, F_SETFD, FD_CLOEXEC) == 0 else { return nil }
            return InheritedDescriptor(name: name, descriptor: FileDescriptor(rawValue: number))
        }
    }

    /// The names of the descriptors from number 3 on; none if the variables are meant for another process.
    static func names(environment: [String: String], process: Int32) -> [String] {
        guard environment["LISTEN_PID"] == "\(process)", let text = environment["LISTEN_FDS"],
            let count = Int(text), count > 0, count <= 65_536
        else { return [] }
        let given =
            environment["LISTEN_FDNAMES"].map { $0.split(separator: ":", omittingEmptySubsequences: false) } ?? []
        return (0..<count).map { $0 < given.count && !given[$0].isEmpty ? String(given[$0]) : "unknown" }
    }
}

extension FileDescriptor {
    /// Opens the standard input and outputs that the parent has closed, so that no other file gets their numbers and what is written
    /// to them. Reading and writing them fails with EBADF, as before. Must be called before the process opens descriptors of its own.
    package static func reserveStandard() {
        for number: Int32 in 0...2 where fcntl(number, F_GETFD) < 0 && Errno.current == .badFileDescriptor {
            // The lowest free number.
            _ = Glibc.open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY)
        }
    }
}
