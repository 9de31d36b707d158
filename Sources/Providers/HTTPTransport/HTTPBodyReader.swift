import AsyncHTTPClient
import FileProvider
import NIOCore

/// The body of a response, piece by piece as it arrives. Used by one task, within the call that it was passed to.
package final class HTTPBodyReader {
    private var iterator: HTTPClientResponse.Body.AsyncIterator
    private let movement: Movement
    private let host: String

    init(_ body: HTTPClientResponse.Body, movement: Movement, host: String) {
        iterator = body.makeAsyncIterator()
        self.movement = movement
        self.host = host
    }

    /// The next piece; nil at the end.
    ///
    /// - Throws: ``FileProviderError`` when the connection breaks.
    package func next() async throws -> HTTPChunk? {
        do {
            guard let buffer = try await iterator.next() else { return nil }
            movement.note()
            return HTTPChunk(buffer: buffer)
        } catch {
            throw TransportFailure(error, host: host)
        }
    }

    /// The rest of the body.
    ///
    /// - Throws: `malformedResponse` for more than `limit` bytes.
    package func all(upTo limit: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let chunk = try await next() {
            guard bytes.count + chunk.count <= limit else {
                throw FileProviderError(.malformedResponse, "\(host) answers with more than \(limit) bytes")
            }
            chunk.append(to: &bytes)
        }
        return bytes
    }

    /// Runs a local operation that may block, such as a write to a disk, on a thread of its own. Its time is no stall.
    package func locally<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        movement.pause()
        defer { movement.resume() }
        return try await BlockingWork.run(body)
    }
}

/// A piece of a body.
package struct HTTPChunk: Sendable {
    private var buffer: ByteBuffer

    init(buffer: ByteBuffer) {
        self.buffer = buffer
    }

    package var count: Int { buffer.readableBytes }

    package var bytes: [UInt8] { Array(buffer.readableBytesView) }

    package func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: buffer.readableBytesView)
    }

    /// The chunk without its first bytes.
    package func dropFirst(_ count: Int) -> HTTPChunk {
        var rest = buffer
        rest.moveReaderIndex(forwardBy: min(count, rest.readableBytes))
        return HTTPChunk(buffer: rest)
    }

    /// At most the first bytes of the chunk.
    package func prefix(_ count: Int) -> HTTPChunk {
        HTTPChunk(buffer: buffer.getSlice(at: buffer.readerIndex, length: min(count, buffer.readableBytes)) ?? buffer)
    }

    /// Writes it at an offset of a file. Blocks for as long as the disk does.
    package func write(to sink: any ContentSink, at offset: Int64) throws {
        try sink.write(buffer.readableBytesSpan, at: offset)
    }
}
