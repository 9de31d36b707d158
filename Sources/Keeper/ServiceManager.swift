import CSyscalls
import Glibc

/// The service manager that has started the keeper: systemd, or another keeper. It starts the keeper again, and has a copy of each
/// stored descriptor, so that the mounts outlive the keeper as well. (sd_notify(3), sd_listen_fds(3))
package struct ServiceManager: Sendable {
    private let address: String
    /// How often the keeper reports that it is alive, in milliseconds; nil for never.
    private let interval: Int?
    private var lastSignOfLife = 0

    /// Reads this process's environment, and removes what is meant for this process alone.
    ///
    /// - Returns: nil without a service manager.
    init?() {
        let watchdog = Self.variable("WATCHDOG_USEC").flatMap { Int($0) } ?? 0
        let isForThis = Self.variable("WATCHDOG_PID").map { $0 == "\(getpid())" } ?? true
        for name in ["WATCHDOG_USEC", "WATCHDOG_PID"] { unsetenv(name) }
        interval = isForThis && watchdog > 0 ? watchdog / 2000 : nil
        guard let address = Self.variable("NOTIFY_SOCKET") else { return nil }
        self.address = address
    }

    /// The descriptors that this process has inherited, which the caller owns from now on. They become close-on-exec.
    static func takeInherited() -> [StoredDescriptor] {
        defer { for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) } }
        guard variable("LISTEN_PID") == "\(getpid())", let count = variable("LISTEN_FDS").flatMap({ Int32($0) }),
            (1...StoredDescriptor.most).contains(count)
        else { return [] }
        let names = variable("LISTEN_FDNAMES")?.split(separator: ":", omittingEmptySubsequences: false) ?? []
        return (0..<count).compactMap { index in
            guard fcntl(3 + index, F_SETFD, FD_CLOEXEC) == 0 else { return nil }
            let name = index < names.count ? names[Int(index)] : ""
            return StoredDescriptor(name: name.isEmpty ? "unknown" : String(name), descriptor: 3 + index)
        }
    }

    /// The keeper's worker is ready, for the first time.
    func ready() { send("READY=1") }

    func tell(status: String) { send("STATUS=\(status)") }

    func store(_ descriptor: Int32, as name: String) {
        send("FDSTORE=1\nFDNAME=\(name)\nFDPOLL=0", descriptors: [descriptor])
    }

    func remove(_ name: String) { send("FDSTOREREMOVE=1\nFDNAME=\(name)") }

    /// Reports that the keeper is alive, if it is time.
    ///
    /// - Returns: the time in milliseconds at which it is due again; nil for never.
    mutating func reportLife(at now: Int) -> Int? {
        guard let interval else { return nil }
        if now >= lastSignOfLife + interval {
            send("WATCHDOG=1")
            lastSignOfLife = now
        }
        return lastSignOfLife + interval
    }

    private func send(_ text: String, descriptors: [Int32] = []) {
        // A service manager that has ended receives nothing; the keeper goes on without it.
        _ = yonder_notify_send(address, text, text.utf8.count, descriptors, Int32(descriptors.count))
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
