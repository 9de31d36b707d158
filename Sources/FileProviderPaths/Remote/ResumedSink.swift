import FileProvider
import Synchronization
import SystemPackage

/// Tells how far a download has come: another attempt goes on from there. The bytes come in their order.
package final class ResumedSink: ContentSink {
    private let sink: any ContentSink
    private let ends: Mutex<(written: Int64, confirmed: Int64)>

    /// - Parameter start: the offset of the first byte.
    package init(_ sink: any ContentSink, from start: Int64) {
        self.sink = sink
        ends = Mutex((start, start))
    }

    /// The offset of the first byte that is missing.
    package var position: Int64 { ends.withLock { $0.written } }

    /// The offset of the first byte whose version is not confirmed.
    package var confirmed: Int64 { ends.withLock { $0.confirmed } }

    package func write(_ bytes: RawSpan, at offset: Int64) throws {
        try sink.write(bytes, at: offset)
        let end = offset + Int64(bytes.byteCount)
        ends.withLock { $0.written = end }
    }

    package func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws {
        try sink.write(from: descriptor, at: offset, count: count)
        ends.withLock { $0.written = offset + count }
    }

    package func confirmVersion() { sink.confirmVersion() }

    package func confirmVersion(of range: Range<Int64>) {
        sink.confirmVersion(of: range)
        ends.withLock { if range.contains($0.confirmed) { $0.confirmed = range.upperBound } }
    }

    package func pace(_ count: Int64) async throws { try await sink.pace(count) }
}
