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

    var withoutRoom: [String: WantOfRoom] {
        get throws {
            let bytes = try file.use { file throws(Errno) in
                try file.readBytes(at: Self.start(in: file), count: Self.mostBytes).prefix(while: { $0 != 0 })
            }
            return bytes.isEmpty ? [:] : try JSONDecoder().decode([String: WantOfRoom].self, from: Data(bytes))
        }
    }

    /// A worker that is killed meanwhile leaves what was there: a write of several pages may end after any of them.
    func write(_ withoutRoom: [String: WantOfRoom]) throws {
        let bytes = Array(try JSONEncoder().encode(withoutRoom)) + [0]
        guard bytes.count <= Self.mostBytes else { throw Errno.fileTooLarge }
        try file.use { file throws(Errno) in
            let place: [UInt8] = try Self.start(in: file) == Self.start(at: 1) ? [2] : [1]
            try file.writeAll(bytes.span.bytes, at: Self.start(at: place[0]))
            try file.writeAll(place.span.bytes, at: 0)
        }
    }

    /// The first byte says at which of two places the domains are. Before, they were at the start.
    private static func start(in file: FileDescriptor) throws(Errno) -> Int64 {
        guard let place = try file.readBytes(at: 0, count: 1).first, (1...2).contains(place) else { return 0 }
        return start(at: place)
    }

    private static func start(at place: UInt8) -> Int64 { Int64(place) * Int64(mostBytes) }

    private static let mostBytes = 1 << 20

    func store(in manager: ServiceManager) throws(Errno) {
        try file.use { file throws(Errno) in try manager.store(file, as: Self.name) }
    }
}
