import FileProvider
import Foundation
import Syscalls
import SystemPackage

extension Folder {
    /// Whether a name in a directory is not hidden. Removes a temporary file that was left by a crash.
    func isShown(_ bytes: [UInt8], in directory: FileDescriptor) -> Bool {
        guard bytes.starts(with: HiddenName.prefix.utf8) else { return true }
        if manager.domain.isReadOnly { return false }
        // The change time, because the modification time is that of the uploaded item.
        if let name = String(validating: bytes, as: UTF8.self),
            let status = try? FileStatus(of: name, in: directory), status.kind == .regular,
            Int64(Date().timeIntervalSince1970) - status.changed.seconds >= leftoverAge
        {
            try? directory.unlink(named: name)
        }
        return false
    }
}
