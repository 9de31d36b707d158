import Foundation
import Glibc

/// What Yonder asks of the machine it runs on.
package enum Machine {
    /// A text that is another one after each boot; empty where the kernel does not tell.
    package static var bootIdentifier: String {
        let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    }

    package static var userIdentifier: UInt32 { geteuid() }
    package static var groupIdentifier: UInt32 { getegid() }

    /// The machine's own name.
    package static var hostName: String { ProcessInfo.processInfo.hostName }

    /// Lets this process have as many files open as it may ask for. (setrlimit)
    package static func raiseFileLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Makes this process a session of its own, so that no terminal's end is its end. (setsid)
    package static func leaveTerminal() {
        setsid()
    }
}
