import SystemPackage

/// What the kernel says of a process or a thread. (proc_pid_status(5))
package enum ProcessStatus {
    /// The value of a line such as `PPid`, which follows a tab; nil for a process that does not exist.
    package static func value(_ key: String, of process: Int32) -> String? {
        guard let bytes = try? FilePath("/proc/\(process)/status").contents() else { return nil }
        let start = Array("\(key):\t".utf8)
        let line = bytes.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: start) }
        return line.map { String(decoding: $0.dropFirst(start.count), as: UTF8.self) }
    }

    /// The supplementary groups, which FUSE requests do not contain; none if the process does not exist.
    package static func supplementaryGroups(of process: Int32) -> [UInt32] {
        value("Groups", of: process)?.split(separator: " ").compactMap { UInt32($0) } ?? []
    }
}
