import FileProvider
import Syscalls
import SystemPackage

/// Writes the provider's bytes to the content file, then tells the transfer, which answers the waiting readers.
struct DownloadSink: ContentSink {
    let identifier: ItemIdentifier
    let size: Int64
    let descriptor: FileDescriptor
    /// Closed at the end of the fetch: a call that ignores its cancellation must not overwrite what was written here since.
    let gate: WriteGate
    /// Bytes are on the disk; none, when a copy has ended early.
    let arrived: @Sendable (Range<Int64>) -> Void
    /// The provider gave bytes outside the file.
    let overflowed: @Sendable (FileProviderError) -> Void
    /// Waits until more bytes may come.
    let paced: @Sendable (Int64) async throws -> Void
    /// The bytes of a range that were written are of the version; with nil, those that follow.
    var confirmed: @Sendable (Range<Int64>?) -> Void = { _ in }

    func write(_ bytes: RawSpan, at offset: Int64) throws {
        let range = try check(offset, Int64(bytes.byteCount))
        try gate.pass { () throws(Errno) in try descriptor.writeAll(bytes, at: offset) }
        arrived(range)
    }

    func write(from source: FileDescriptor, at offset: Int64, count: Int64) throws {
        let range = try check(offset, count)
        let copied = try descriptor.copy(from: source, at: offset, to: offset, count: count, through: gate)
        arrived(range.lowerBound..<range.lowerBound + copied)
        guard copied == count else {
            throw FileProviderError(
                .malformedResponse,
                "the source of '\(identifier)' ends at \(offset + copied) of \(size) bytes", itemIdentifier: identifier)
        }
    }

    func confirmVersion() { confirmed(nil) }

    func confirmVersion(of range: Range<Int64>) { confirmed(range) }

    func pace(_ count: Int64) async throws {
        try await paced(count)
    }

    private func check(_ offset: Int64, _ count: Int64) throws -> Range<Int64> {
        try Task.checkCancellation()
        let (end, overflow) = offset.addingReportingOverflow(count)
        guard !overflow, offset >= 0, count >= 0, end <= size else {
            let error = FileProviderError(
                .malformedResponse,
                "the provider gave bytes \(offset) to \(offset &+ count) of '\(identifier)', which has "
                    + "\(size)",
                itemIdentifier: identifier)
            overflowed(error)
            throw error
        }
        return offset..<end
    }
}

extension DownloadSink {
    /// Writes into a scratch file. A call that was given up may write on, and keeps it open.
    init(
        of identifier: ItemIdentifier, into scratch: ContentSource, _ traffic: ContentTraffic, _ progress: CallProgress
    ) {
        self.init(
            identifier: identifier, size: scratch.size, descriptor: scratch.descriptor, gate: WriteGate(),
            arrived: { [scratch] range in
                withExtendedLifetime(scratch) { progress.advance() }
                traffic.receive(range.upperBound - range.lowerBound)
            },
            overflowed: { _ in },
            paced: { try await traffic.receiving.pass($0) { progress.advance() } })
    }
}
