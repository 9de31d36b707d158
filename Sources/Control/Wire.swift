import Foundation
import NIOCore

/// A request message: one line of JSON.
struct RequestMessage: Codable, Sendable {
    var version: Int
    var command: ControlCommand
}

/// An answer message: any number of events and partial results, then a result or an error.
enum AnswerMessage: Codable, Sendable {
    case event(ControlEvent)
    case part(ControlResult)
    case result(ControlResult)
    case error(ControlError)
}

/// The encoding of messages as lines.
enum Wire {
    /// The protocol version, which must be equal on both sides.
    static let version = 1
    static let longestLine = 16 << 20

    static func encode(_ message: some Encodable) throws -> ByteBuffer {
        var line = try encoder().encode(message)
        line.append(UInt8(ascii: "\n"))
        return ByteBuffer(bytes: line)
    }

    static func decode<Message: Decodable>(_ type: Message.Type, from line: ByteBuffer) throws -> Message {
        try JSONDecoder().decode(type, from: Data(line.readableBytesView))
    }

    /// The error of a message that one side cannot read although both have the same protocol version: they come from different packages.
    ///
    /// - Parameter consequence: ends `the daemon is of another version, and`.
    static func otherVersion(_ consequence: String) -> ControlError {
        ControlError(
            .version,
            "the daemon is of another version than 'yonder', and \(consequence); 'yonder daemon restart' starts the installed one"
        )
    }

    private static func encoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }
}

/// Splits the stream into lines, without line ends.
final class LineDecoder: ByteToMessageDecoder {
    typealias InboundOut = ByteBuffer

    /// The length of the prefix of the buffer that contains no line end.
    private var searched = 0

    func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        let view = buffer.readableBytesView.dropFirst(searched)
        guard let end = view.firstIndex(of: UInt8(ascii: "\n")) else {
            searched = buffer.readableBytes
            guard searched <= Wire.longestLine else {
                throw ControlError(.usage, "a message of more than \(Wire.longestLine) bytes")
            }
            return .needMoreData
        }
        let length = end - buffer.readableBytesView.startIndex
        searched = 0
        guard length <= Wire.longestLine, let line = buffer.readSlice(length: length) else {
            throw ControlError(.usage, "a message of more than \(Wire.longestLine) bytes")
        }
        buffer.moveReaderIndex(forwardBy: 1)
        context.fireChannelRead(wrapInboundOut(line))
        return .continue
    }

    func decodeLast(
        context: ChannelHandlerContext, buffer: inout ByteBuffer, seenEOF: Bool
    ) throws -> DecodingState {
        while try decode(context: context, buffer: &buffer) == .continue {}
        return .needMoreData
    }
}
