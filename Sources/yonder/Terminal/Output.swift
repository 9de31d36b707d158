import ArgumentParser
import Control
import FileNames
import Foundation
import Synchronization
import SystemPackage

/// The output of a command: results on standard output, diagnostics on standard error.
struct Output: Sendable {
    let isJSON: Bool

    init(_ options: OutputOptions) {
        isJSON = options.json
    }

    /// Prints a result: as JSON with `--json`, else as lines. On a terminal, what controls it is escaped in them.
    func print(_ value: some Encodable, lines: () -> [String]) throws {
        if isJSON {
            Self.writeJSON(try Self.json(value) + "\n")
        } else {
            let lines = lines().map(Self.shown)
            guard !lines.isEmpty else { return }
            Self.write(lines.joined(separator: "\n") + "\n", to: .standardOutput)
        }
    }

    /// Prints one of many results: as a line of JSON with `--json`, else as text.
    func printLine(_ value: some Encodable, text: () -> String) throws {
        guard isJSON else { return Self.write(Self.shown(text()) + "\n", to: .standardOutput) }
        Self.writeJSON(try Self.json(value, isPretty: false) + "\n")
    }

    static func json(_ value: some Encodable, isPretty: Bool = true) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func complain(_ text: String) {
        write(diagnostic(text), to: .standardError)
    }

    /// Prints why the command fails.
    ///
    /// - Returns: its exit code.
    static func failure(_ text: String, exit status: Int32 = 1) -> ExitCode {
        complain(text)
        return ExitCode(status)
    }

    /// Prints a line for each refused item.
    ///
    /// - Throws: `ExitCode` 1 if there is one.
    static func complain(about refusals: [Refusal]) throws {
        for refusal in refusals { complain("\(refusal.path): \(refusal.reason)") }
        if !refusals.isEmpty { throw ExitCode(1) }
    }

    /// The line for a diagnostic: `yonder: ` and the text. Control characters are escaped, also when standard error is not
    /// a terminal: names of files and messages of remotes must neither end the line nor control the terminal that shows a
    /// log later. Scripts that need exact names use `--json`.
    static func diagnostic(_ text: String) -> String { "yonder: " + LineText.escaped(text) + "\n" }

    /// Writes a text. Names in it are written as their original bytes.
    static func write(_ text: String, to file: FileHandle) {
        write(FileNameText.bytes(of: text), to: file)
    }

    /// Ends the process with status 1 if standard output cannot be written: half a result must not look like all of it. A closed
    /// pipe is no error, because its reader has what it wanted.
    static func write(_ bytes: [UInt8], to file: FileHandle) {
        do {
            _ = try FileDescriptor(rawValue: file.fileDescriptor).writeAll(bytes)
        } catch {
            guard file.fileDescriptor == FileDescriptor.standardOutput.rawValue else { return }
            guard error as? Errno != .brokenPipe else { return readerIsGone.store(true, ordering: .relaxed) }
            complain("the output cannot be written: \(error)")
            exit(1)
        }
    }

    private static let readerIsGone = Atomic(false)

    /// Ends the process with status 0 if the reader of standard output has gone: for commands that go on until Ctrl-C.
    static func endWithoutReader() {
        if readerIsGone.load(ordering: .relaxed) { exit(0) }
    }

    /// Writes JSON, which must be UTF-8: names in it stay encoded by ``FileNameText``.
    static func writeJSON(_ text: String) {
        write(Array(text.utf8), to: .standardOutput)
    }

    /// A number with its noun: `1 item`, `2 items`.
    static func count(_ number: some BinaryInteger, _ one: String, _ many: String? = nil) -> String {
        "\(number) \(number == 1 ? one : many ?? one + "s")"
    }

    /// A text for one line of standard output: on a terminal, control characters are escaped; elsewhere the text is unchanged.
    static func shown(_ text: String) -> String {
        isTerminal ? LineText.escaped(text) : text
    }

    private static let isTerminal = Terminal.isStandardOutput

    /// Aligns rows in columns, each as wide as its widest text. The last column is not padded.
    static func table(_ rows: [[String]]) -> [String] {
        let rows = rows.map { $0.map(shown) }
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.compactMap { $0.count > column ? $0[column].count : nil }.max() ?? 0
        }
        return table(rows, widths: widths)
    }

    /// Aligns rows in columns of given widths.
    static func table(_ rows: [[String]], widths: [Int]) -> [String] {
        rows.map { row in
            row.enumerated().map { column, text in
                column == row.count - 1
                    ? text : text + String(repeating: " ", count: max(0, widths[column] - text.count))
            }.joined(separator: "  ")
        }
    }
}
