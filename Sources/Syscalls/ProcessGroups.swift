import SystemPackage

/// The supplementary groups of a process, which FUSE requests do not contain.
package enum ProcessGroups {
    /// The supplementary groups; none if the process does not exist. (/proc)
    package static func supplementary(of process: Int32) -> [UInt32] {
        guard let bytes = try? FilePath("/proc/\(process)/status").contents() else { return [] }
        for line in bytes.split(separator: UInt8(ascii: "\n")) where line.starts(with: "Groups:".utf8) {
            return String(decoding: line.dropFirst("Groups:".utf8.count), as: UTF8.self)
                .split(whereSeparator: \.isWhitespace).compactMap { UInt32($0) }
        }
        return []
    }
}
