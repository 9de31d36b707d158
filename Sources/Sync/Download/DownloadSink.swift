import FileProvider
import Syscalls
import SystemPackage

/// The transfer for which a fetch brings bytes.
protocol FetchReceiver: Sendable {
    var identifier: ItemIdentifier { get }
    var size: Int64 { get }
    var descriptor: FileDescriptor { get }
    var accounting: any FetchAccounting { get }

    /// Bytes of a fetch are on the disk.
    func arrived(_ range: Range<Int64>, of fetch: Int)
    /// The provider gave bytes outside the file.
    func overflowed(_ fetch: Int, _ error: FileProviderError)
}

/// Writes the provider's bytes to disk, then tells the transfer, which answers the waiting readers.
struct DownloadSink: ContentSink {
    let download: any FetchReceiver
    let fetch: Int
    let moves: CallProgress
    /// The process for which they come, when they count for it.
    let reader: Int32?

    func write(_ bytes: RawSpan, at offset: Int64) throws {
        let range = try check(offset, Int64(bytes.byteCount))
        try download.descriptor.writeAll(bytes, at: offset)
        arrived(range)
    }

    private func arrived(_ range: Range<Int64>) {
        moves.advance()
        if let reader { download.accounting.charge(range.upperBound - range.lowerBound, to: reader) }
        download.arrived(range, of: fetch)
    }

    func write(from source: FileDescriptor, at offset: Int64, count: Int64) throws {
        let range = try check(offset, count)
        let copied = try download.descriptor.copy(from: source, at: offset, to: offset, count: count)
        if copied > 0 { arrived(range.lowerBound..<range.lowerBound + copied) } else { moves.advance() }
        guard copied == count else {
            throw FileProviderError(
                .malformedResponse,
                "the source of '\(download.identifier)' ends at \(offset + copied) of \(download.size) bytes",
                itemIdentifier: download.identifier)
        }
    }

    private func check(_ offset: Int64, _ count: Int64) throws -> Range<Int64> {
        try Task.checkCancellation()
        let (end, overflow) = offset.addingReportingOverflow(count)
        guard !overflow, offset >= 0, count >= 0, end <= download.size else {
            let error = FileProviderError(
                .malformedResponse,
                "the provider gave bytes \(offset) to \(offset &+ count) of '\(download.identifier)', which has "
                    + "\(download.size)",
                itemIdentifier: download.identifier)
            download.overflowed(fetch, error)
            throw error
        }
        return offset..<end
    }
}
