import FileProvider
import Foundation
import Synchronization
import SystemPackage

/// A sink that stores a file's content in memory and records which bytes were written.
public final class CollectingSink: ContentSink {
    private let pieces = Mutex<[(offset: Int64, bytes: [UInt8])]>([])
    private let version = Mutex((isConfirmed: false, isDoubtful: false))
    private let confirmations = Mutex((ranges: ByteRanges(), isWrong: false))
    private let beforeWriting: @Sendable () throws -> Void

    /// An empty sink.
    ///
    /// - Parameter beforeWriting: called before each write; may block, and may reject the write by throwing.
    public init(beforeWriting: @escaping @Sendable () throws -> Void = {}) {
        self.beforeWriting = beforeWriting
    }

    /// The number of bytes written; bytes written twice count twice.
    public var count: Int { pieces.withLock { $0.reduce(0) { $0 + $1.bytes.count } } }

    /// Whether the provider has confirmed the version before the first byte.
    package var isConfirmed: Bool { version.withLock { $0.isConfirmed && !$0.isDoubtful } }

    /// The written bytes whose version the provider has confirmed after it had written them.
    package var confirmed: ByteRanges { confirmations.withLock { $0.ranges } }

    /// Whether the provider has confirmed the version of bytes that it had not written.
    package var hasWrongConfirmation: Bool { confirmations.withLock { $0.isWrong } }

    /// The bytes of a range.
    ///
    /// - Throws: ``ConformanceFailure`` if some of them were not written.
    public func bytes(in range: Range<Int64>) throws -> [UInt8] {
        let pieces = pieces.withLock { $0 }.sorted { $0.offset < $1.offset }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        for piece in pieces {
            let next = range.lowerBound + Int64(bytes.count)
            let end = min(piece.offset + Int64(piece.bytes.count), range.upperBound)
            guard piece.offset <= next, end > next else { continue }
            bytes += piece.bytes[Int(next - piece.offset)..<Int(end - piece.offset)]
        }
        try expect(
            bytes.count == range.count,
            "the byte at offset \(range.lowerBound + Int64(bytes.count)) of \(range) was not written")
        return bytes
    }

    public func write(_ bytes: RawSpan, at offset: Int64) throws {
        try beforeWriting()
        var copy: [UInt8] = []
        copy.reserveCapacity(bytes.byteCount)
        // The load is bounds-checked, and any bits are a byte.
        for index in 0..<bytes.byteCount { copy.append(bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)) }
        take(copy, at: offset)
    }

    public func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws {
        try beforeWriting()
        // Opened separately, because the provider's file position must not change.
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/fd/\(descriptor.rawValue)"))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(offset))
        let bytes = [UInt8](try file.read(upToCount: Int(count)) ?? Data())
        take(bytes, at: offset)
        guard bytes.count == Int(count) else {
            throw FileProviderError(.malformedResponse, "the source ends at \(offset + Int64(bytes.count))")
        }
    }

    public func confirmVersion() {
        version.withLock { $0.isConfirmed = true }
    }

    public func confirmVersion(of range: Range<Int64>) {
        let written = ByteRanges(pieces.withLock { $0.map { $0.offset..<$0.offset + Int64($0.bytes.count) } })
        let missing = ByteRanges(written.gaps(in: range))
        confirmations.withLock { confirmations in
            for part in missing.gaps(in: range) { confirmations.ranges.insert(part) }
            if !missing.isEmpty { confirmations.isWrong = true }
        }
    }

    private func take(_ bytes: [UInt8], at offset: Int64) {
        version.withLock { if !$0.isConfirmed { $0.isDoubtful = true } }
        pieces.withLock { $0.append((offset, bytes)) }
    }
}
