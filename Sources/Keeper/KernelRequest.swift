/// A request that the kernel sends through /dev/fuse, as much of it as the keeper has to know. (linux/fuse.h)
package struct KernelRequest: Hashable, Sendable {
    package enum Answer: Hashable, Sendable {
        case ioError
        case success
        /// The kernel expects no answer, or the next worker gives it.
        case none
    }

    private enum Operation {
        static let forget: UInt32 = 2
        static let write: UInt32 = 16
        static let release: UInt32 = 18
        static let flush: UInt32 = 25
        static let releaseDirectory: UInt32 = 29
        static let interrupt: UInt32 = 36
        static let destroy: UInt32 = 38
        static let notifyReply: UInt32 = 41
        static let batchForget: UInt32 = 42
    }

    private static let headerLength = 40
    /// The bit of the number of a request that the kernel sends again (FUSE_UNIQUE_RESEND).
    private static let resent: UInt64 = 1 << 63

    package let number: UInt64
    private let operation: UInt32
    private let node: UInt64
    private let bytes: ArraySlice<UInt8>

    /// - Parameter bytes: the whole request.
    /// - Returns: nil for bytes that are no request.
    package init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.count >= Self.headerLength else { return nil }
        self.bytes = bytes
        operation = UInt32(truncatingIfNeeded: bytes.word(at: 4, length: 4))
        number = bytes.word(at: 8)
        node = bytes.word(at: 16)
    }

    package var answer: Answer {
        // A worker may have carried it out, and has recorded the result.
        if number & Self.resent != 0 { return .none }
        switch operation {
        case Operation.forget, Operation.batchForget, Operation.interrupt, Operation.notifyReply: return .none
        case Operation.release, Operation.releaseDirectory, Operation.flush, Operation.destroy: return .success
        // A page of a mapping (FUSE_WRITE_CACHE): its process would not hear of an error, and the bytes would be lost.
        case Operation.write where isSet(1, at: 20): return .none
        default: return .ioError
        }
    }

    /// What the next worker has to count: records of `MissedRequests` in `Mount`, four words each: operation, node, the number of
    /// lookups or the flags of the open file, number of the request.
    package var missed: [[UInt64]] {
        let body = Self.headerLength
        switch operation {
        case Operation.forget where bytes.count >= body + 8:
            return [[2, node, bytes.word(at: body), number]]
        case Operation.batchForget where bytes.count >= body + 8:
            let count = min(Int(bytes.word(at: body, length: 4)), (bytes.count - body - 8) / 16)
            return (0..<count).map { index in
                let start = body + 8 + index * 16
                return [2, bytes.word(at: start), bytes.word(at: start + 8), number]
            }
        case Operation.release where number & Self.resent == 0 && bytes.count >= body + 16:
            return [[18, node, bytes.word(at: body + 8, length: 4), number]]
        default: return []
        }
    }

    /// The answer as the kernel reads it; nil for none.
    package var response: [UInt8]? {
        let error: Int32
        switch answer {
        case .none: return nil
        case .success: error = 0
        case .ioError: error = -5
        }
        return [UInt8](word: 16, length: 4) + [UInt8](word: UInt64(UInt32(bitPattern: error)), length: 4)
            + [UInt8](word: number)
    }

    private func isSet(_ flag: UInt64, at offset: Int) -> Bool {
        bytes.count >= Self.headerLength + offset + 4
            && bytes.word(at: Self.headerLength + offset, length: 4) & flag != 0
    }
}

extension ArraySlice<UInt8> {
    /// A number in the byte order of the machines that are supported, little endian.
    fileprivate func word(at offset: Int, length: Int = 8) -> UInt64 {
        (0..<length).reduce(0) { $0 | UInt64(self[startIndex + offset + $1]) << (8 * $1) }
    }
}

extension [UInt8] {
    package init(word: UInt64, length: Int = 8) {
        self = (0..<length).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
    }
}
