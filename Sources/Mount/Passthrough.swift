import FUSE
import SystemPackage
import Volume

/// Registers content files with a session's kernel connection.
struct Passthrough: PassthroughRegistry {
    let session: Session

    /// This registry; nil where the kernel or the daemon's rights do not allow passthrough.
    var registry: (any PassthroughRegistry)? {
        session.negotiated?.passthrough == true ? self : nil
    }

    func register(_ descriptor: FileDescriptor) throws(Errno) -> Int32 {
        try session.registerBacking(descriptor).rawValue
    }

    func unregister(_ backing: Int32) {
        try? session.unregisterBacking(BackingID(rawValue: backing))
    }
}
