import Syscalls
import SystemPackage

/// The user whose process has made a connection to a port of this machine.
enum LocalPeer {
    struct End: Hashable, Sendable {
        /// An IPv4 address, as `127.0.0.1`.
        var address: String
        var port: Int
    }

    /// Established, and closed by one side.
    private static let connected: Set<Substring> = ["01", "04", "05", "08"]

    /// - Parameters:
    ///   - peer: the end of the process that has connected.
    ///   - server: the end that it has connected to.
    /// - Returns: nil when the connection is not found.
    static func user(of peer: End, connectedTo server: End) -> UInt32? {
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            guard let bytes = try? FilePath(table).contents() else { continue }
            if let user = user(of: peer, connectedTo: server, in: String(decoding: bytes, as: UTF8.self)) {
                return user
            }
        }
        return nil
    }

    /// As the kernel shows its table: a line for each socket, with addresses and ports in hexadecimal. (proc_pid_net(5)) Every address
    /// 127.x.y.z is this machine's: a port alone may be another connection's, too.
    static func user(of peer: End, connectedTo server: End, in text: String) -> UInt32? {
        let (locals, remotes) = (names(of: peer), names(of: server))
        for line in text.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: " ")
            guard fields.count > 7, connected.contains(fields[3]), locals.contains(String(fields[1])),
                remotes.contains(String(fields[2]))
            else { continue }
            return UInt32(fields[7])
        }
        return nil
    }

    /// The end as the tables of IPv4 and of IPv6 show it; none for what is no IPv4 address.
    private static func names(of end: End) -> Set<String> {
        let bytes = end.address.split(separator: ".", omittingEmptySubsequences: false).compactMap { UInt8($0) }
        guard bytes.count == 4, (0...65535).contains(end.port) else { return [] }
        // The kernel shows the four bytes as one number of this machine.
        let number = UInt32(bigEndian: bytes.reduce(0) { $0 << 8 | UInt32($1) })
        let name = hexadecimal(number, digits: 8) + ":" + hexadecimal(UInt32(end.port), digits: 4)
        return [name, "0000000000000000" + hexadecimal(UInt32(bigEndian: 0xFFFF), digits: 8) + name]
    }

    private static func hexadecimal(_ number: UInt32, digits: Int) -> String {
        let text = String(number, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}
