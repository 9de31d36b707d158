import Foundation
import Syscalls
import SystemPackage

/// What the keeper stores once a worker has mounted the domains again: later ones do not do it again. It holds those that found no
/// room on the disk, and lies in memory: on a full disk there is no other place for it.
struct MountedAgainMark: Sendable {
    /// The name under which it is stored.
    static let name = "mounted-again"
    let file: OwnedDescriptor

    init() throws(Errno) { file = OwnedDescriptor(try .inMemory(named: "yonder-mounted-again")) }

    /// The mark of an earlier worker.
    ///
    /// - Parameter file: is owned by the mark from now on, also where this returns nil.
    /// - Returns: nil for one of a Yonder that stored nothing in it.
    init?(inherited file: FileDescriptor) {
        self.file = OwnedDescriptor(file)
        guard (try? FileStatus(of: file))?.kind == .regular else { return nil }
    }

    /// The domains that found no room.
    var withoutRoom: [String: WantOfRoom] {
        get throws {
            let bytes = try file.use { file throws(Errno) in
                try file.readBytes(at: 0, count: Int(file.lengths().size))
            }
            return bytes.isEmpty ? [:] : try JSONDecoder().decode([String: WantOfRoom].self, from: Data(bytes))
        }
    }

    func write(_ withoutRoom: [String: WantOfRoom]) throws {
        var bytes = Array(try JSONEncoder().encode(withoutRoom))
        try file.use { file in
            // Over what is there, in one call: a worker that is killed leaves the one or the other.
            let rest = Int(try file.lengths().size) - bytes.count
            if rest > 0 { bytes += Array(repeating: UInt8(ascii: " "), count: rest) }
            try file.writeAll(bytes.span.bytes, at: 0)
        }
    }

    func store(in manager: ServiceManager) throws(Errno) {
        try file.use { file throws(Errno) in try manager.store(file, as: Self.name) }
    }
}
