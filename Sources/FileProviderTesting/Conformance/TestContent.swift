import FileProvider
import Foundation
import SystemPackage

/// Bytes in a file without a name, for an upload.
public final class TestContent: Sendable {
    /// The content for the call.
    public let source: ContentSource

    /// Writes bytes to a new file.
    ///
    /// - Parameters:
    ///   - bytes: the content.
    ///   - confirm: called by `ContentSource.confirm()`; throws for content that was written during the upload.
    /// - Throws: the errors of the file system.
    public init(_ bytes: [UInt8], confirm: @escaping @Sendable () throws -> Void = {}) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("content-\(UUID().uuidString)").path
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let descriptor = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
        source = ContentSource(descriptor: descriptor, size: Int64(bytes.count), confirm: confirm)
    }
}

/// Runs a body with bytes as ``TestContent``.
@discardableResult
package func withContent<Value>(
    _ bytes: [UInt8], confirm: @escaping @Sendable () throws -> Void = {}, _ body: (ContentSource) async throws -> Value
) async throws -> Value {
    try await body(TestContent(bytes, confirm: confirm).source)
}
