import FileProvider
import SystemPackage

extension TransferFiles {
    /// The bytes of one call, so that content arrives as it is read and a cancelled reader costs little.
    private static let piece: Int64 = 8 << 20

    /// Fetches a file's content or a range of it, piece by piece.
    ///
    /// - Parameters:
    ///   - name: the file in messages.
    ///   - range: the bytes, not empty; nil for all.
    ///   - isWhole: whether the program can only read whole files.
    ///   - call: lets the program write `length` bytes from `start` on into the file `into`. It gets the answer for the piece
    ///     before, and returns the answer for this one, which is of the wanted version, with the size of the whole file.
    /// - Returns: the answer for the last piece.
    /// - Throws: `malformedResponse` if the program has written other bytes; the errors of the call and the sink.
    func fetch<Answer: Sendable>(
        _ name: String, range: Range<Int64>?, isWhole: Bool, into sink: any ContentSink,
        _ call: (_ start: Int64, _ length: Int64?, _ into: String, Answer?) async throws -> (Answer, size: Int64)
    ) async throws -> Answer {
        var offset = isWhole ? 0 : range?.lowerBound ?? 0
        var last: Answer?
        while true {
            let length = isWhole ? nil : min(Self.piece, (range?.upperBound ?? .max) - offset)
            let (start, before) = (offset, last)
            let (answer, size, end) = try await with { into, file in
                let (answer, size) = try await call(start, length, into, before)
                let end = max(start, min(size, length.map { start + $0 } ?? size))
                try await BlockingWork.run {
                    let written = try file.seek(offset: 0, from: .end)
                    guard written == (end > start ? end : 0) else {
                        throw FileProviderError(
                            .malformedResponse,
                            "the program wrote '\(name)' up to byte \(written), and it must be \(end)")
                    }
                    // The answer has come after the bytes.
                    sink.confirmVersion()
                    if end > start { try sink.write(from: file, at: start, count: end - start) }
                }
                return (answer, size, end)
            }
            try await sink.pace(end - start)
            if end >= min(size, range?.upperBound ?? .max) { return answer }
            (offset, last) = (end, answer)
        }
    }
}
