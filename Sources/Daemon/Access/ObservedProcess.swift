import Foundation
import Syscalls

/// A process as shown by /proc.
struct ObservedProcess: Sendable {
    /// Distinguishes processes that reuse a number, and programs that one process runs in turn.
    struct Identity: Hashable, Sendable {
        var process: Int32
        /// In clock ticks since boot.
        var startTime: UInt64
        var executable: String?
        /// That of the thread, which the rules go by as well: two scripts have one executable, that of their interpreter.
        var name: String
    }

    let identity: Identity
    let group, session: Int32
    private let state: Substring

    /// - Returns: nil for a process that does not exist or is not visible.
    init?(_ process: Int32) {
        guard process > 0, let text = Self.text("/proc/\(process)/stat") else { return nil }
        // The second field is the name, which may contain spaces and parentheses.
        guard let start = text.utf8.firstIndex(of: UInt8(ascii: "(")),
            let end = text.utf8.lastIndex(of: UInt8(ascii: ")")), start < end
        else { return nil }
        let fields = text[end...].split(separator: " ")
        guard fields.count > 20, let startTime = UInt64(fields[20]), let group = Int32(fields[3]),
            let session = Int32(fields[4])
        else { return nil }
        (self.group, self.session, state) = (group, session, fields[1])
        identity = Identity(
            process: process, startTime: startTime,
            executable: try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/exe"),
            name: String(text[text.utf8.index(after: start)..<end]))
    }

    static func all() -> [ObservedProcess] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { Int32($0) }.compactMap { ObservedProcess($0) }
    }

    /// Whether it is the same process as another, and has not ended.
    func isRunning(as other: ObservedProcess) -> Bool {
        identity.startTime == other.identity.startTime && state != "Z" && state != "X"
    }

    /// The variables that it was started with, each with a NUL after it; empty for a process of another user.
    var environment: Data { FileManager.default.contents(atPath: "/proc/\(identity.process)/environ") ?? Data() }

    /// The name of the process; for a script, the name of the script and not of its interpreter.
    var name: String? {
        Self.text("/proc/\(leader)/comm")?.trimmingCharacters(in: .newlines)
    }

    /// What rules say of it.
    var subject: MaterializationRules.Subject {
        MaterializationRules.Subject(
            executable: identity.executable, name: name, thread: identity.name, controlGroup: controlGroup)
    }

    private var controlGroup: String? {
        let lines = Self.text("/proc/\(identity.process)/cgroup")?.split(separator: "\n") ?? []
        // The control group of version 2, else the one in which systemd keeps units in version 1.
        let line = lines.first { $0.hasPrefix("0::") && $0 != "0::/" } ?? lines.first { $0.contains(":name=systemd:") }
        return line?.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).last.map(String.init)
    }

    /// Whether the process or an ancestor was started with `yonder run --no-materialize`.
    var isMarked: Bool {
        let lines = Self.text("/proc/\(identity.process)/limits")?.split(separator: "\n") ?? []
        guard let line = lines.first(where: { $0.hasPrefix("Max file locks") }) else { return false }
        return line.split(separator: " ").contains("\(Machine.materializationMark)")
    }

    /// The process of this thread.
    private var leader: Int32 { Self.leader(of: identity.process) }

    /// The process of a thread; the argument if it cannot be determined.
    static func leader(of thread: Int32) -> Int32 {
        ProcessStatus.value("Tgid", of: thread).flatMap { Int32($0) } ?? thread
    }

    private static func text(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}
