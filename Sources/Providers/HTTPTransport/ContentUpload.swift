import FileProvider
import NIOCore
import Synchronization
import SystemPackage

/// A range of a file's content as the body of a request, read as it is asked for.
struct ContentUpload: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    let source: ContentSource
    let range: Range<Int64>
    let movement: Movement
    let failure: UploadFailure
    private static let piece = 128 << 10

    func makeAsyncIterator() -> Iterator { Iterator(upload: self, position: range.lowerBound) }

    struct Iterator: AsyncIteratorProtocol {
        let upload: ContentUpload
        var position: Int64

        mutating func next() async throws -> ByteBuffer? {
            // Being asked means that what was given before has gone.
            upload.movement.note()
            let count = Swift.min(Int64(ContentUpload.piece), upload.range.upperBound - position)
            guard count > 0 else { return nil }
            let (source, start) = (upload.source, position)
            upload.movement.pause()
            defer { upload.movement.resume() }
            do {
                let bytes = try await BlockingWork.run { try source.read(at: start, count: Int(count)) }
                guard bytes.count == Int(count) else {
                    throw FileProviderError.posix(.ioError, "the content ends at \(start + Int64(bytes.count)) bytes")
                }
                position += count
                return ByteBuffer(bytes: bytes)
            } catch {
                upload.failure.note(error)
                throw error
            }
        }
    }
}

/// A body that somebody gives piece by piece.
struct PiecesUpload: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    let next: @Sendable () async throws -> [UInt8]?
    let movement: Movement
    let failure: UploadFailure

    func makeAsyncIterator() -> Iterator { Iterator(upload: self) }

    struct Iterator: AsyncIteratorProtocol {
        let upload: PiecesUpload

        mutating func next() async throws -> ByteBuffer? {
            upload.movement.note()
            // Whoever gives the pieces says how long may be waited for them.
            upload.movement.pause()
            defer { upload.movement.resume() }
            do {
                return try await CallGate.$isInside.withValue(true) {
                    try await upload.next().map { ByteBuffer(bytes: $0) }
                }
            } catch {
                upload.failure.note(error)
                throw error
            }
        }
    }
}

/// Why an upload was broken off on this side.
final class UploadFailure: Sendable {
    private let first = Mutex<(any Error)?>(nil)

    var error: (any Error)? { first.withLock { $0 } }

    func note(_ error: any Error) {
        first.withLock { if $0 == nil { $0 = error } }
    }
}
