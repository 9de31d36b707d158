import FileProvider
import Foundation
import Synchronization
import SystemPackage

/// Compares what comes with what is here, and ends the transfer at the first difference.
package final class ComparingSink: ContentSink {
    package struct Difference: Error {}

    private let source: ContentSource
    private let taken = Mutex<Int64>(0)
    private static let piece = 1 << 20

    package init(source: ContentSource) {
        self.source = source
    }

    /// How many bytes were the same.
    package var count: Int64 { taken.withLock { $0 } }

    package func write(_ bytes: RawSpan, at offset: Int64) throws {
        let mine = try source.read(at: offset, count: bytes.byteCount)
        guard mine.count == bytes.byteCount else { throw Difference() }
        for index in 0..<mine.count where bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self) != mine[index] {
            throw Difference()
        }
        taken.withLock { $0 += Int64(mine.count) }
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

/// The content of a file without any.
final class EmptyContent: Sendable {
    let source: ContentSource

    init() throws {
        do {
            source = ContentSource(
                descriptor: try FileDescriptor.open("/dev/null", .readOnly, options: .closeOnExec), size: 0)
        } catch let error as Errno {
            throw FileProviderError.posix(error)
        }
    }

    deinit { try? source.descriptor.close() }
}
