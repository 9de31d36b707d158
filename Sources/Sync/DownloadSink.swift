import FileProvider
import Syscalls
import SystemPackage

/// Takes bytes from the provider: on disk first, then to those who wait.
struct DownloadSink: ContentSink {
    let download: Download
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
