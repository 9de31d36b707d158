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
}
