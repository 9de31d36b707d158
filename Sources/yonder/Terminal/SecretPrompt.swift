import ArgumentParser
import Control
import Foundation
import Glibc

/// Asks for a secret on the terminal of this process, without echo.
struct SecretPrompt {
    private let terminal: FileHandle

    /// - Returns: nil if the process has no terminal, or if neither its input nor its diagnostics belong to one: a script has
    ///   redirected both, and expects no question.
    init?() {
        guard Terminal.isStandardInput || Terminal.isStandardError,
            let terminal = FileHandle(forUpdatingAtPath: "/dev/tty")
        else { return nil }
        self.terminal = terminal
    }

    /// Reads a secret: a line from standard input, or an answer without echo if that is a terminal.
    ///
    /// - Throws: `ExitCode` 64 after printing that there is none, or that it is not UTF-8; as ``ask(_:)``.
    static func read(_ name: String) throws -> String {
        if Terminal.isStandardInput, let prompt = SecretPrompt() { return try prompt.ask(name) }
        guard let line = readLine(), !line.isEmpty else {
            throw Output.failure("no \(name) on standard input", exit: 64)
        }
        // It replaces bytes that are not UTF-8: the remote would get another secret.
        if line.unicodeScalars.contains(where: { $0 == "\u{FFFD}" }) { throw notText(name) }
        return line
    }

    /// - Parameter subject: what is asked for, such as `password of 'user'`.
    /// - Throws: `ExitCode` 130 after Ctrl-C; 64 for an empty answer, and one that is not UTF-8, after a diagnostic.
    func ask(_ subject: String) throws -> String {
        guard let mode = TerminalMode(ofKeysOn: terminal.fileDescriptor) else { throw Self.none(subject) }
        write("yonder: \(LineText.escaped(subject)): ")
        let answer = line()
        mode.restore()
        write("\n")
        switch answer {
        case .interrupted: throw ExitCode(130)
        case .line(let bytes):
            guard let text = String(validating: bytes, as: UTF8.self) else { throw Self.notText(subject) }
            guard !text.isEmpty else { throw Self.none(subject) }
            return text
        }
    }

    private static func none(_ subject: String) -> ExitCode {
        Output.complain("no \(subject) was entered")
        return ExitCode(64)
    }

    private static func notText(_ subject: String) -> ExitCode {
        Output.complain("the \(subject) is not text in UTF-8")
        return ExitCode(64)
    }

    private enum Answer {
        case line([UInt8])
        case interrupted
    }

    private func line() -> Answer {
        var bytes: [UInt8] = []
        while let byte = (try? terminal.read(upToCount: 1))?.first {
            switch byte {
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"): return .line(bytes)
            // Ctrl-C and Ctrl-\.
            case 0x03, 0x1C: return .interrupted
            // Ctrl-D.
            case 0x04: return .line(bytes)
            // Backspace removes a character, whose further bytes are 10xxxxxx.
            case 0x08, 0x7F: while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
            // Ctrl-U.
            case 0x15: bytes = []
            case 0..<0x20: break
            default: bytes.append(byte)
            }
        }
        return .line([])
    }

    private func write(_ text: String) { try? terminal.write(contentsOf: Data(text.utf8)) }
}
