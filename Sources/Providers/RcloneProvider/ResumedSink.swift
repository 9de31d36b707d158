import FileProvider
import Synchronization
import SystemPackage

/// Tells how far a download has come: another rclone process goes on from there, so that each byte is written once.
final class ResumedSink: ContentSink {
    private let sink: any ContentSink
    private let next: Mutex<Int64>

    /// - Parameter start: the offset of the first byte.
    init(_ sink: any ContentSink, from start: Int64) {
        self.sink = sink
        next = Mutex(start)
    }

    /// The offset of the first byte that is missing.
    var position: Int64 { next.withLock { $0 } }

    func write(_ bytes: RawSpan, at offset: Int64) throws {
        try sink.write(bytes, at: offset)
        let end = offset + Int64(bytes.byteCount)
        next.withLock { $0 = end }
    }

    func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws {
        try sink.write(from: descriptor, at: offset, count: count)
        next.withLock { $0 = offset + count }
    }

    func confirmVersion() { sink.confirmVersion() }

    func pace(_ count: Int64) async throws { try await sink.pace(count) }
}
