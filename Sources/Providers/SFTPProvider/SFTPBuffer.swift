/// Divides what a server sends into messages.
struct SFTPBuffer {
    /// The longest message that a server may send.
    static let longestMessage = 1 << 20

    private var bytes: [UInt8] = []
    private var start = 0

    mutating func append(_ more: [UInt8]) {
        if start > 0 {
            bytes.removeFirst(start)
            start = 0
        }
        bytes += more
    }

    /// The next message that is complete, without its length; nil when more bytes are needed.
    ///
    /// - Throws: for a length that no message has.
    mutating func next() throws(SFTPReader.Malformed) -> SFTPReply? {
        guard bytes.count - start >= 4 else { return nil }
        let length = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
        guard length >= 5, length <= Self.longestMessage else { throw SFTPReader.Malformed() }
        guard bytes.count - start - 4 >= length else { return nil }
        let message = bytes[start + 4..<start + 4 + length]
        start += 4 + length
        return SFTPReply(message)
    }
}

extension SFTPReply {
    /// - Parameter message: at least five bytes.
    init(_ message: ArraySlice<UInt8>) {
        type = message[message.startIndex]
        // The version is the response to the only request without an identifier.
        let isVersion = type == SFTPMessage.version
        identifier = isVersion ? 0 : message.dropFirst().prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        body = Array(message.dropFirst(isVersion ? 1 : 5))
    }
}
