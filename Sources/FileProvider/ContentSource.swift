import SystemPackage

/// The content of a file that is uploaded.
///
/// A process may write the file during the upload. The upload must not become visible on the remote before it is certain
/// that all bytes are of one generation. ``read(at:count:)`` verifies this before it returns the last byte. A provider that
/// copies from ``descriptor`` calls ``confirm()`` before the copy becomes visible.
///
///     var offset: Int64 = 0
///     while offset < contents.size {
///         let bytes = try contents.read(at: offset, count: 1 << 20)
///         try await contents.pace(Int64(bytes.count))
///         try await upload.send(bytes)
///         offset += Int64(bytes.count)
///     }
public final class ContentSource: Sendable {
    /// Open for reading as long as the source is referenced. Use positional reads only.
    public let descriptor: FileDescriptor
    /// The size in bytes.
    public let size: Int64
    /// What was uploaded while the file was still being written.
    package let growing: GrowingContent?
    /// The source that closes the descriptor; nil if this one does.
    private let owner: ContentSource?
    private let check: @Sendable () throws -> Void
    private let progress: @Sendable (Int64) -> Void
    private let pacing: @Sendable (Int64) async throws -> Void

    /// - Parameters:
    ///   - descriptor: open for reading; it is closed with the last reference to the source.
    ///   - size: in bytes.
    ///   - confirm: throws if the file has been written since it was opened.
    ///   - progress: receives the number of bytes after each read.
    public convenience init(
        descriptor: FileDescriptor, size: Int64, confirm: @escaping @Sendable () throws -> Void = {},
        progress: @escaping @Sendable (Int64) -> Void = { _ in }
    ) {
        self.init(descriptor: descriptor, size: size, growing: nil, confirm: confirm, progress: progress)
    }

    package init(
        descriptor: FileDescriptor, size: Int64, growing: GrowingContent?,
        confirm: @escaping @Sendable () throws -> Void, progress: @escaping @Sendable (Int64) -> Void,
        pace: @escaping @Sendable (Int64) async throws -> Void = { _ in }
    ) {
        self.descriptor = descriptor
        self.size = size
        self.growing = growing
        owner = nil
        self.progress = progress
        pacing = pace
        check = confirm
    }

    /// The same content, of which nothing is reported or confirmed as it is read.
    package init(reading owner: ContentSource) {
        descriptor = owner.descriptor
        size = owner.size
        growing = nil
        self.owner = owner
        check = {}
        progress = { _ in }
        pacing = { _ in }
    }

    deinit {
        // A call that was given up may read on.
        if owner == nil { try? descriptor.close() }
    }

    /// Keeps to the rate that the user allows (`--limit-up`): waits until the `count` bytes that were read may be sent.
    ///
    /// - Throws: `CancellationError` if the call is cancelled meanwhile.
    public func pace(_ count: Int64) async throws {
        try await pacing(count)
    }

    /// Reports `count` bytes read through ``descriptor``: they are shown as progress, and keep the call from timing out.
    public func advance(by count: Int64) {
        progress(count)
    }

    /// Returns the bytes of a range, clamped to the content. Blocks on the disk.
    ///
    /// - Throws: the error of ``confirm()`` if the range includes the last byte; `posix` with EIO if the file is shorter
    ///   than ``size``; other POSIX errors. The upload must then be aborted.
    public func read(at offset: Int64, count: Int) throws -> [UInt8] {
        let start = min(max(0, offset), size)
        let end = start + min(Int64(max(0, count)), size - start)
        let bytes = try bytes(from: start, count: Int(end - start))
        guard bytes.count == Int(end - start) else {
            // Most likely the file was written; that error is more precise.
            try confirm()
            throw FileProviderError.posix(
                .ioError, "the content ends at \(start + Int64(bytes.count)) of \(size) bytes")
        }
        progress(end - start)
        if end == size { try confirm() }
        return bytes
    }

    /// Calls a closure with the bytes of a range, piece by piece. Nothing is reported or confirmed. Blocks on the disk.
    ///
    /// - Throws: as ``read(at:count:)``; the closure's errors.
    package func readQuietly(_ range: Range<Int64>, _ take: ([UInt8]) throws -> Void) throws {
        let quiet = ContentSource(reading: self)
        let piece: Int64 = 1 << 20
        for offset in stride(from: range.lowerBound, to: range.upperBound, by: Int(piece)) {
            try take(quiet.read(at: offset, count: Int(min(piece, range.upperBound - offset))))
        }
    }

    /// Verifies that all bytes that were read so far are of one generation.
    ///
    /// - Throws: an error if the file has been written since. The upload must then be aborted and leave nothing behind.
    public func confirm() throws {
        try check()
    }

    private func bytes(from offset: Int64, count: Int) throws -> [UInt8] {
        do {
            return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                while filled < count {
                    let got = try descriptor.read(
                        fromAbsoluteOffset: offset + Int64(filled), into: .init(buffer.extracting(filled..<count)))
                    if got == 0 { return }
                    filled += got
                }
            }
        } catch let error as Errno {
            throw FileProviderError.posix(error)
        }
    }
}
