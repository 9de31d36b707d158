import Foundation
import Synchronization
import SystemPackage

/// A folder on the disk that a test changes behind a provider's back.
package protocol TestFolder {
    /// A path in the folder.
    subscript(_ path: String) -> String { get }
}

extension TestFolder {
    package func makeDirectory(_ path: String) async throws {
        try FileManager.default.createDirectory(atPath: self[path], withIntermediateDirectories: false)
    }

    /// In place, as a remote file that is written keeps its inode.
    package func write(_ bytes: [UInt8], to path: String) async throws {
        let file = try FileDescriptor.open(
            FilePath(self[path]), .writeOnly, options: [.create, .truncate, .closeOnExec],
            permissions: [.ownerReadWrite, .groupRead, .otherRead])
        defer { try? file.close() }
        try file.writeAll(bytes)
    }

    package func rename(_ path: String, to newPath: String) async throws {
        try FileManager.default.moveItem(atPath: self[path], toPath: self[newPath])
    }

    package func delete(_ path: String) async throws {
        try FileManager.default.removeItem(atPath: self[path])
    }
}

/// Gives each write a second of its own, long ago: servers that know only seconds tell two contents apart by them.
package enum WriteClock {
    private static let seconds = Mutex(1_000_000_000.0)

    package static func next() -> Date {
        seconds.withLock { seconds in
            seconds += 2
            return Date(timeIntervalSince1970: seconds)
        }
    }
}
