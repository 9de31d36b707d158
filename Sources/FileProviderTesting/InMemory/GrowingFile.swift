import FileProvider
import Foundation
import SystemPackage

/// A file that a test writes while a provider uploads it.
package final class GrowingFile: Sendable {
    /// What the provider receives.
    package let growing: GrowingContent
    private let descriptor: FileDescriptor

    /// An empty file without a name.
    package init() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("growing-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let file = try FileDescriptor.open(
            FilePath(path), .readWrite, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        descriptor = file
        growing = GrowingContent { offset, count in
            try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                filled = try file.read(fromAbsoluteOffset: offset, into: .init(buffer))
            }
        }
    }

    deinit {
        try? descriptor.close()
    }

    package func write(_ bytes: [UInt8], at offset: Int64) throws {
        _ = try descriptor.writeAll(toAbsoluteOffset: offset, bytes)
    }

    /// The whole file, when it is no longer written.
    package func content(size: Int, confirm: @escaping @Sendable () throws -> Void = {}) throws -> ContentSource {
        ContentSource(
            descriptor: try descriptor.duplicate(), size: Int64(size), growing: growing, confirm: confirm,
            progress: { _ in })
    }

    /// Bytes of which no two pieces are the same.
    package static func bytes(_ count: Int) -> [UInt8] {
        var state: UInt64 = 1
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 33)
        }
    }
}
