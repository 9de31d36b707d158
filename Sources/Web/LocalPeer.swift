import Foundation

/// The user whose process has made a connection to a port of this machine.
enum LocalPeer {
    private static let table = "/proc/net/tcp"
    private static let established = "01"

    /// - Parameters:
    ///   - port: of the process that has connected.
    ///   - server: the port that it has connected to.
    /// - Returns: nil when the connection is not found.
    static func user(ofPort port: Int, connectedTo server: Int) -> UInt32? {
        // A file of /proc has no length.
        guard let text = try? String(contentsOfFile: table, encoding: .utf8) else { return nil }
        return user(ofPort: port, connectedTo: server, in: text)
    }

    /// As the kernel shows its table: a line for each socket, with addresses and ports in hexadecimal. (proc_pid_net(5))
    static func user(ofPort port: Int, connectedTo server: Int, in text: String) -> UInt32? {
        for line in text.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: " ")
            guard fields.count > 7, fields[3] == established, Self.port(fields[1]) == port,
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
