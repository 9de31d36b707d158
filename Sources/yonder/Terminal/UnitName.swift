/// The systemd unit of a daemon.
struct UnitName: Hashable {
    let name: String
    /// Whether the service manager of a user has it.
    let isOfUser: Bool

    /// - Parameter controlGroups: /proc/PID/cgroup of the daemon. (cgroups(7))
    /// - Returns: nil if it is in no unit of ours.
    init?(controlGroups: String) {
        for line in controlGroups.split(separator: "\n") {
            let parts = line.split(separator: "/").map(String.init)
            guard let last = parts.last, last.hasSuffix(".service"),
                last == "yonderd.service" || last.hasPrefix("yonderd@")
            else { continue }
            name = last
            isOfUser = parts.contains { $0.hasPrefix("user@") }
            return
        }
        return nil
    }
}
