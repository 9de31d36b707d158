import FileProvider
import Synchronization
import SystemPackage

/// Compares a download with local content, and ends the transfer at the first difference.
package final class ComparingSink: ContentSink {
    package struct Difference: Error {}

    private let source: ContentSource
    /// A read that is repeated gives bytes again.
    private let taken = Mutex(ByteRanges())
    private static let piece = 1 << 20

    package init(source: ContentSource) {
        self.source = source
    }

    /// How many bytes of the content were the same.
    package var count: Int64 { taken.withLock { $0.count } }

    package func write(_ bytes: RawSpan, at offset: Int64) throws {
        let mine = try source.read(at: offset, count: bytes.byteCount)
        guard mine.count == bytes.byteCount else { throw Difference() }
        for index in 0..<mine.count where bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self) != mine[index] {
            throw Difference()
        }
        taken.withLock { $0.insert(offset..<offset + Int64(mine.count)) }
    }

    package func pace(_ count: Int64) async throws {
        try await source.pace(count)
    }

    package func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws {
        var done: Int64 = 0
        while done < count {
            let size = Int(min(Int64(Self.piece), count - done))
            let bytes = try [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
                filled = try descriptor.read(fromAbsoluteOffset: offset + done, into: .init(buffer))
            }
            guard !bytes.isEmpty else { throw Difference() }
            try write(bytes, at: offset + done)
            done += Int64(bytes.count)
        }
    }
}

extension ContentSource {
    /// Whether a download has just these bytes.
    ///
    /// - Parameter read: writes the download into a sink.
    /// - Throws: what `read` throws; what ``ContentSource/confirm()`` throws when the content was written here meanwhile.
    package func equals(_ read: (ComparingSink) async throws -> Void) async throws -> Bool {
        let sink = ComparingSink(source: self)
        do {
            try await read(sink)
        } catch is ComparingSink.Difference {
            try confirm()
            return false
        }
        try confirm()
        return sink.count == size
    }
}

extension ContentSource {
    /// The content of a file without any.
    static func empty() throws -> ContentSource {
        do {
            return ContentSource(
                descriptor: try FileDescriptor.open("/dev/null", .readOnly, options: .closeOnExec), size: 0)
        } catch let error as Errno {
            throw FileProviderError.posix(error)
        }
    }
}
