import Glibc
import SystemPackage

/// The supplementary groups of a process, which FUSE requests do not contain.
package enum ProcessGroups {
    /// The supplementary groups; none if the process does not exist. (/proc)
    package static func supplementary(of process: Int32) -> [UInt32] {
        let path = FilePath("/proc/\(process)/status")
        guard let file = try? FileDescriptor.open(path, .readOnly, options: .closeOnExec) else { return [] }
        defer { try? file.close() }
        // Large enough for the maximum number of groups.
        guard let bytes = try? file.readBytes(at: 0, count: 1 << 20) else { return [] }
        for line in bytes.split(separator: UInt8(ascii: "\n")) where line.starts(with: "Groups:".utf8) {
            return String(decoding: line.dropFirst("Groups:".utf8.count), as: UTF8.self)
                .split(whereSeparator: \.isWhitespace).compactMap { UInt32($0) }
        }
        return []
    }
}
