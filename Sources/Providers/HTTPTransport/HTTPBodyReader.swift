import AsyncHTTPClient
import FileProvider
import NIOCore

/// The body of a response, piece by piece as it arrives. Used by one task, within the call that it was passed to.
final class HTTPBodyReader {
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
    func next() async throws -> ByteBuffer? {
        do {
            let piece = try await iterator.next()
            if piece != nil { movement.note() }
            return piece
        } catch {
            throw TransportFailure(error, host: host)
        }
    }

    /// The rest of the body.
    ///
    /// - Throws: `malformedResponse` for more than `limit` bytes.
    func all(upTo limit: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let piece = try await next() {
            guard bytes.count + piece.readableBytes <= limit else {
                throw FileProviderError(.malformedResponse, "\(host) answers with more than \(limit) bytes")
            }
            bytes.append(contentsOf: piece.readableBytesView)
        }
        return bytes
    }

    /// The beginning of the body, for a response whose status says enough without the rest, such as an error with a page for people.
    func beginning(upTo limit: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < limit, let piece = try await next() {
            bytes.append(contentsOf: piece.readableBytesView.prefix(limit - bytes.count))
        }
        return bytes
    }

    /// Runs a local operation that may block, such as a write to a disk, on a thread of its own. Its time is no stall.
    func locally<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        movement.pause()
        defer { movement.resume() }
        return try await BlockingWork.run(body)
    }

    /// Waits for something on this machine. Its time is no stall.
    func whileWaiting(_ body: () async throws -> Void) async throws {
        movement.pause()
        defer { movement.resume() }
        try await body()
    }
}
