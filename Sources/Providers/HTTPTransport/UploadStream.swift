import FileProvider
import NIOCore
import Synchronization
import SystemPackage

/// The body of a request, produced while it is sent.
struct UploadStream: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    enum Source: Sendable {
        case reading(ContentSource, Range<Int64>)
        /// The pieces that a closure returns.
        case calling(@Sendable () async throws -> [UInt8]?)
    }

    private let source: Source
    private let movement: Movement
    private let failure: UploadFailure
    private static let piece = 128 << 10

    init(_ source: Source, _ movement: Movement, _ failure: UploadFailure) {
        self.source = source
        self.movement = movement
        self.failure = failure
    }

    func makeAsyncIterator() -> Iterator { Iterator(stream: self) }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let stream: UploadStream
        fileprivate var count: Int64 = 0

        mutating func next() async throws -> ByteBuffer? {
            // The client asks for a piece when the previous one was sent. The time to produce it is no stall.
            stream.movement.note()
            stream.movement.pause()
            defer { stream.movement.resume() }
            do {
                guard let bytes = try await piece() else {
                    stream.movement.noteSent(count)
                    return nil
                }
                count += Int64(bytes.count)
                return ByteBuffer(bytes: bytes)
            } catch {
                stream.failure.note(error)
                throw error
            }
        }

        private func piece() async throws -> [UInt8]? {
            switch stream.source {
            case .reading(let source, let range):
                let start = range.lowerBound + count
                let length = Int(Swift.min(Int64(UploadStream.piece), range.upperBound - start))
                guard length > 0 else { return nil }
                let bytes = try await BlockingWork.run { try source.read(at: start, count: length) }
                guard bytes.count == length else {
                    throw FileProviderError.posix(.ioError, "the content ends at \(start + Int64(bytes.count)) bytes")
                }
                try await source.pace(Int64(length))
                return bytes
            case .calling(let next):
                return try await CallGate.$isInside.withValue(true) { try await next() }
            }
        }
    }
}

final class UploadFailure: Sendable {
    private let first = Mutex<(any Error)?>(nil)

    var error: (any Error)? { first.withLock { $0 } }

    func note(_ error: any Error) {
        first.withLock { if $0 == nil { $0 = error } }
    }
}
