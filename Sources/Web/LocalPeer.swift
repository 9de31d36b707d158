import Syscalls
import SystemPackage

/// The user whose process has made a connection to a port of this machine.
enum LocalPeer {
    private static let tables = ["/proc/net/tcp", "/proc/net/tcp6"]
    /// Established, and closed by one side.
    private static let connected: Set<Substring> = ["01", "04", "05", "08"]

    /// - Parameters:
    ///   - port: of the process that has connected.
    ///   - server: the port that it has connected to.
    /// - Returns: nil when the connection is not found.
    static func user(ofPort port: Int, connectedTo server: Int) -> UInt32? {
        for table in tables {
            guard let bytes = try? FilePath(table).contents() else { continue }
            let text = String(decoding: bytes, as: UTF8.self)
            if let user = user(ofPort: port, connectedTo: server, in: text) { return user }
        }
        return nil
    }

    /// As the kernel shows its table: a line for each socket, with addresses and ports in hexadecimal. (proc_pid_net(5))
    static func user(ofPort port: Int, connectedTo server: Int, in text: String) -> UInt32? {
        for line in text.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: " ")
            guard fields.count > 7, connected.contains(fields[3]), Self.port(fields[1]) == port,
                Self.port(fields[2]) == server
            else { continue }
            return UInt32(fields[7])
        }
        return nil
    }

    private static func port(_ address: Substring) -> Int? {
        address.split(separator: ":").last.flatMap { Int($0, radix: 16) }
    }
}
