import SystemPackage

/// A file's bytes on their way to the remote.
///
/// The file can be written while it is read. Nothing of it may become visible on the remote before it is certain that
/// all that was read is of one generation: ``read(at:count:)`` makes certain of that before it gives the last byte, and
/// who copies through ``descriptor`` calls ``confirm()`` before the copy becomes visible.
public final class ContentSource: Sendable {
    /// Open for reading. Its own position means nothing: only positional reads are right. The system closes it after
    /// the call.
    public let descriptor: FileDescriptor
    /// How many bytes, from offset 0 on.
    public let size: Int64
    /// What was sent ahead of it, while the file was being written.
    package let growing: GrowingContent?
    private let check: @Sendable () throws -> Void
    private let progress: @Sendable (Int64) -> Void

    /// - Parameters:
    ///   - confirm: throws when the file has been written since it was opened.
    ///   - progress: told how many bytes more were taken.
    public convenience init(
        descriptor: FileDescriptor, size: Int64, confirm: @escaping @Sendable () throws -> Void = {},
        progress: @escaping @Sendable (Int64) -> Void = { _ in }
    ) {
        self.init(descriptor: descriptor, size: size, growing: nil, confirm: confirm, progress: progress)
    }

    package init(
        descriptor: FileDescriptor, size: Int64, growing: GrowingContent?,
        confirm: @escaping @Sendable () throws -> Void, progress: @escaping @Sendable (Int64) -> Void
    ) {
        self.descriptor = descriptor
        self.size = size
        self.growing = growing
        self.progress = progress
        check = confirm
    }

    /// The same content by a descriptor of the provider's own, which outlives the call.
    public func duplicate(as descriptor: FileDescriptor) -> ContentSource {
        ContentSource(descriptor: descriptor, size: size, confirm: check, progress: progress)
    }

    /// Says that so many bytes were taken through ``descriptor``: what moves is shown, and not given up as stuck.
    public func advance(by count: Int64) {
        progress(count)
    }

    /// The bytes of a range, as far as it lies inside the content. Blocks for as long as the disk does.
    ///
    /// - Throws: what ``confirm()`` throws, when the range reaches to the end of the content; EIO as a POSIX error when
    ///   the file is shorter than ``size``; other POSIX errors. The transfer must be broken off.
    public func read(at offset: Int64, count: Int) throws -> [UInt8] {
        let start = min(max(0, offset), size)
        let end = start + min(Int64(max(0, count)), size - start)
        let bytes = try bytes(from: start, count: Int(end - start))
        guard bytes.count == Int(end - start) else {
            // Most likely it was written, which says more.
            try confirm()
            throw FileProviderError.posix(
                .ioError, "the content ends at \(start + Int64(bytes.count)) of \(size) bytes")
        }
        progress(end - start)
        if end == size { try confirm() }
        return bytes
    }

    /// Returns when all that was read up to now is of one generation.
    ///
    /// - Throws: when the file has been written meanwhile. The transfer must be broken off, and leave nothing behind.
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
