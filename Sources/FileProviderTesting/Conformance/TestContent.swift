import FileProvider
import Foundation
import SystemPackage

/// Some bytes in a file without a name, to be sent to a provider. The file goes with this object: keep it until the
/// call has returned.
public final class TestContent: Sendable {
    public let source: ContentSource

    /// - Parameter confirm: what the source says when it is asked whether the bytes are of one generation.
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
