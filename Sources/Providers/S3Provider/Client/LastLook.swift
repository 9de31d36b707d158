import FileProvider
import Synchronization

/// A file's content, piece by piece, with a look at the remote before the last piece: where a server checks no preconditions,
/// that is the last moment at which an upload can be aborted without having overwritten anything.
final class LastLook: Sendable {
    private let contents: ContentSource
    private let look: @Sendable () async throws -> Void
    private let position = Mutex<Int64>(0)
    private static let piece: Int64 = 128 << 10

    /// - Parameter look: throws when the content must not be written any more.
    init(_ contents: ContentSource, look: @escaping @Sendable () async throws -> Void) {
        self.contents = contents
        self.look = look
    }

    /// The next piece; nil at the end.
    func next() async throws -> [UInt8]? {
        let start = position.withLock { $0 }
        let count = min(Self.piece, contents.size - start)
        guard count > 0 else { return nil }
        try await contents.pace(count)
        if start + count == contents.size { try await look() }
        let bytes = try await BlockingWork.run { [contents] in try contents.read(at: start, count: Int(count)) }
        position.withLock { $0 = start + count }
        return bytes
    }
}
