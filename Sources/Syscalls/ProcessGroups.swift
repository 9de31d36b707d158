import Glibc
import SystemPackage

/// The groups of a process beside its own, which FUSE does not tell with a request.
package enum ProcessGroups {
    /// The supplementary groups; none when the process has gone. (/proc)
    package static func supplementary(of process: Int32) -> [UInt32] {
        let path = FilePath("/proc/\(process)/status")
        guard let file = try? FileDescriptor.open(path, .readOnly, options: .closeOnExec) else { return [] }
        defer { try? file.close() }
        // As many groups as a process can have still fit.
        guard let bytes = try? file.readBytes(at: 0, count: 1 << 20) else { return [] }
        for line in bytes.split(separator: UInt8(ascii: "\n")) where line.starts(with: "Groups:".utf8) {
            return String(decoding: line.dropFirst("Groups:".utf8.count), as: UTF8.self)
                .split(whereSeparator: \.isWhitespace).compactMap { UInt32($0) }
        }
        return []
    }
}
