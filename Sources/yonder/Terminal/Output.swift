import FileNames
import Control
import Foundation

/// What the command line prints: results on standard output, everything else on standard error.
struct Output: Sendable {
    let isJSON: Bool

    init(_ options: OutputOptions) {
        isJSON = options.json
    }

    /// Prints a result: as JSON when asked, else as lines.
    func print(_ value: some Encodable, lines: () -> [String]) throws {
        if isJSON {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            Self.writeJSON(String(decoding: try encoder.encode(value), as: UTF8.self) + "\n")
        } else {
            let lines = lines()
            guard !lines.isEmpty else { return }
            Self.write(lines.joined(separator: "\n") + "\n", to: .standardOutput)
        }
    }

    /// Prints one of many results: as a line of JSON when asked, else as text.
    func printLine(_ value: some Encodable, text: () -> String) throws {
        guard isJSON else { return Self.write(text() + "\n", to: .standardOutput) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        Self.writeJSON(String(decoding: try encoder.encode(value), as: UTF8.self) + "\n")
    }

    /// Prints a line to standard error: `yonder: ` and the text.
    static func complain(_ text: String) {
        write("yonder: " + text + "\n", to: .standardError)
    }

    /// Writes a text as far as somebody reads it. Names in it are written as the bytes that they are.
    static func write(_ text: String, to file: FileHandle) {
        try? file.write(contentsOf: Data(FileNameText.bytes(of: text)))
    }

    /// Writes JSON, which is UTF-8: names in it stay as ``FileNameText`` has them.
    static func writeJSON(_ text: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
    }

    /// How many there are of something: `1 item`, `2 items`.
    static func count(_ number: some BinaryInteger, _ one: String, _ many: String? = nil) -> String {
        "\(number) \(number == 1 ? one : many ?? one + "s")"
    }

    /// A name as a terminal can show it on one line: control characters are escaped. Elsewhere as it is.
    static func shown(_ name: String) -> String {
        Terminal.isStandardOutput ? LineText.escaped(name) : name
    }

    /// Columns, each as wide as its widest text; the last is as it is.
    static func table(_ rows: [[String]]) -> [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.compactMap { $0.count > column ? $0[column].count : nil }.max() ?? 0
        }
        return table(rows, widths: widths)
    }

    /// Columns of given widths.
    static func table(_ rows: [[String]], widths: [Int]) -> [String] {
        rows.map { row in
            row.enumerated().map { column, text in
                column == row.count - 1
                    ? text : text + String(repeating: " ", count: max(0, widths[column] - text.count))
            }.joined(separator: "  ")
        }
    }
}
