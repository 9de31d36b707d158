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
    /// Whether a name in a directory may be shown. Removes what a crash has left behind.
    func isShown(_ bytes: [UInt8], in directory: FileDescriptor) -> Bool {
        guard bytes.starts(with: HiddenName.prefix.utf8) else { return true }
        if manager.domain.isReadOnly { return false }
        // The time of the last change, not of the last modification: that one is the item's.
        if let name = String(validating: bytes, as: UTF8.self),
            let status = try? FileStatus(of: name, in: directory), status.kind == .regular,
            Int64(Date().timeIntervalSince1970) - status.changed.seconds >= leftoverAge
        {
            try? directory.unlink(named: name)
        }
        return false
    }
}
