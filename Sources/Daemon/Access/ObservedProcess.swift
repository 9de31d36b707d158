import Foundation
import Syscalls

/// A process as /proc tells of it.
struct ObservedProcess: Sendable {
    /// What tells one process from another that had its number before, and a program from the one that it ran before.
    struct Identity: Hashable, Sendable {
        var process: Int32
        /// In clock ticks since the machine started.
        var startTime: UInt64
        var executable: String?
    }

    let identity: Identity

    /// - Returns: nil for a process that is gone, or that is none of ours to see.
    init?(_ process: Int32) {
        guard process > 0, let text = Self.text("/proc/\(process)/stat") else { return nil }
        // The name in the second field may hold anything, blanks and parentheses included.
        guard let end = text.utf8.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = text[end...].split(separator: " ")
        guard fields.count > 20, let startTime = UInt64(fields[20]) else { return nil }
        identity = Identity(
            process: process, startTime: startTime,
            executable: try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/exe"))
    }

    /// What the process is called: for a script that is the script, not what runs it.
    var name: String? {
        Self.text("/proc/\(leader)/comm")?.trimmingCharacters(in: .newlines)
    }

    /// The path of its control group.
    var controlGroup: String? {
        let lines = Self.text("/proc/\(identity.process)/cgroup")?.split(separator: "\n") ?? []
        // Version 2, else where systemd keeps its units in version 1.
        let line = lines.first { $0.hasPrefix("0::") && $0 != "0::/" } ?? lines.first { $0.contains(":name=systemd:") }
        return line?.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).last.map(String.init)
    }

    /// Whether it, or one that it comes from, was started with `yonder run --no-materialize`.
    var isMarked: Bool {
        let lines = Self.text("/proc/\(identity.process)/limits")?.split(separator: "\n") ?? []
        guard let line = lines.first(where: { $0.hasPrefix("Max file locks") }) else { return false }
        return line.split(separator: " ").contains("\(Machine.materializationMark)")
    }

    /// The process that a thread belongs to.
    private var leader: Int32 { Self.leader(of: identity.process) }

    /// The process that a thread belongs to; what was given where that cannot be found out.
    static func leader(of thread: Int32) -> Int32 {
        let lines = text("/proc/\(thread)/status")?.split(separator: "\n") ?? []
        let line = lines.first { $0.hasPrefix("Tgid:") }
        return line?.split(whereSeparator: \.isWhitespace).last.flatMap { Int32($0) } ?? thread
    }

    private static func text(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}
