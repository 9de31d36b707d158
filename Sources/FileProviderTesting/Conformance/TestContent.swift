import FileProvider
import Foundation
import SystemPackage

/// Bytes in a file without a name, for an upload. Retain the instance until the call has returned.
public final class TestContent: Sendable {
    public let source: ContentSource

    /// - Parameter confirm: the result of ``ContentSource/confirm()``.
    public init(_ bytes: [UInt8], confirm: @escaping @Sendable () throws -> Void = {}) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("content-\(UUID().uuidString)").path
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let descriptor = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
        source = ContentSource(descriptor: descriptor, size: Int64(bytes.count), confirm: confirm)
    }

    deinit {
        try? source.descriptor.close()
    }
}
