import Foundation

/// Prints a log as it is, or each of its lines as an object of JSON.
struct LogPrinter {
    private let output: Output
    private let line: (String) -> LogLine
    /// The beginning of a line whose end has not been read.
    private var rest: [UInt8] = []

    /// - Parameter line: understands a line, for JSON.
    init(_ output: Output, reading line: @escaping (String) -> LogLine) {
        self.output = output
        self.line = line
    }

    mutating func print(_ bytes: [UInt8]) throws {
        guard output.isJSON else { return Output.write(bytes, to: .standardOutput) }
        rest += bytes
        guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { return }
        try printLines(of: rest[..<end])
        rest.removeSubrange(...end)
    }

    /// Prints a last line that has no end.
    mutating func finish() throws {
        guard !rest.isEmpty else { return }
        try printLines(of: rest[...])
        rest = []
    }

    private func printLines(of text: ArraySlice<UInt8>) throws {
        for bytes in text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            try output.printLine(line(String(decoding: bytes, as: UTF8.self))) { "" }
        }
    }
}
