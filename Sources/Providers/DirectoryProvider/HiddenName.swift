import FileProvider
import Foundation
import Syscalls
import SystemPackage

/// Names for files on their way in or out. They are never shown, and what has one for long was left by a crash.
enum HiddenName {
    static let prefix = ".yonder-partial-"

    /// A name that nothing has.
    static func make() -> String {
        prefix + String(UInt64.random(in: .min ... .max), radix: 16)
    }

    static func isOne(_ name: String) -> Bool { name.utf8.starts(with: prefix.utf8) }
}

extension Folder {
    /// The names in a directory that may be shown, as bytes, in no order. Removes what a crash has left behind.
    func shownNames(in directory: FileDescriptor) throws(Errno) -> [[UInt8]] {
        let all = try directory.names()
        let hidden = all.filter { $0.starts(with: HiddenName.prefix.utf8) }
        if hidden.isEmpty { return all }
        let remaining = all.filter { !$0.starts(with: HiddenName.prefix.utf8) }
        if manager.domain.isReadOnly { return remaining }
        let now = Int64(Date().timeIntervalSince1970)
        for bytes in hidden {
            // The time of the last change, not of the last modification: that one is the item's.
            guard let name = String(validating: bytes, as: UTF8.self),
                let status = try? FileStatus(of: name, in: directory), status.kind == .regular,
                now - status.changed.seconds >= leftoverAge
            else { continue }
            try? directory.unlink(named: name)
        }
        return remaining
    }
}
