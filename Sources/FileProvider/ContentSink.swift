import SystemPackage

/// Receives the content that a provider fetches.
///
/// Both functions write the bytes to the local disk before they return, and wake the readers that wait for them. They
/// block on the disk.
///
///     try sink.write(chunk, at: offset)
///     try await sink.pace(Int64(chunk.count))
public protocol ContentSink: Sendable {
    /// Writes bytes at an offset of the file, in bytes.
    ///
    /// - Throws: an error if the bytes are not needed any more (all readers were interrupted, or the item has changed), if
    ///   they lie outside the file, or if the disk is full. Rethrow it.
    func write(_ bytes: RawSpan, at offset: Int64) throws

    /// Copies `count` bytes from a descriptor, from the same offset, by reflink or `copy_file_range(2)` where possible. The
    /// caller keeps the descriptor.
    ///
    /// - Throws: as ``write(_:at:)-(RawSpan,_)``.
    func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws

    /// Tells that all bytes that are written after this call are of the requested version: the response that brings them says so, as the
    /// `ETag` of an HTTP response does. They are kept if the fetch fails or is cancelled then. Otherwise bytes are kept only if the
    /// fetch ends well, or with ``confirmVersion(of:)``. Does nothing by default.
    func confirmVersion()

    /// Tells that the bytes of a range that this fetch has written are of the requested version: the remote had that version before
    /// they were read, and still has it after that. A provider that learns of the version only afterwards calls this while a
    /// long fetch goes on. The bytes of a file that is fetched in ranges are kept if the fetch fails or is cancelled then. Does
    /// nothing by default.
    func confirmVersion(of range: Range<Int64>)

    /// Keeps to the rate that the user allows (`--limit-down`): waits until more bytes may be received after the `count` ones that
    /// were written. Returns at once by default.
    ///
    /// - Throws: `CancellationError` if the call is cancelled meanwhile. Rethrow it.
    func pace(_ count: Int64) async throws
}

extension ContentSink {
    public func confirmVersion() {}

    public func confirmVersion(of range: Range<Int64>) {}

    public func pace(_ count: Int64) async throws {}

    /// Writes bytes at an offset of the file, in bytes.
    ///
    /// - Throws: as ``write(_:at:)-(RawSpan,_)``.
    public func write(_ bytes: [UInt8], at offset: Int64) throws {
        try write(bytes.span.bytes, at: offset)
    }
}
