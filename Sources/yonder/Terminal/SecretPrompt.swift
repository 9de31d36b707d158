import ArgumentParser
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

    /// - Parameter subject: what is asked for, such as `password of 'user'`.
    /// - Throws: `ExitCode` 130 after Ctrl-C; 64 for an empty answer, after a diagnostic.
    func ask(_ subject: String) throws -> String {
        var settings = termios()
        guard tcgetattr(terminal.fileDescriptor, &settings) == 0 else { throw Self.none(subject) }
        let before = settings
        // Without signals of the terminal and without lines: Ctrl-C arrives as a byte, and cannot end this process before the
        // settings are back.
        settings.c_lflag &= ~tcflag_t(ECHO | ISIG | ICANON | IEXTEN)
        settings.c_iflag &= ~tcflag_t(IXON)
        let descriptor = terminal.fileDescriptor
        let restore: @Sendable () -> Void = {
            var settings = before
            tcsetattr(descriptor, TCSAFLUSH, &settings)
        }
        let signals = Self.onEnd(restore)
        defer { for source in signals { source.cancel() } }
        tcsetattr(descriptor, TCSAFLUSH, &settings)
        write("yonder: \(subject): ")
        let answer = line()
        restore()
        write("\n")
        switch answer {
        case .interrupted: throw ExitCode(130)
        case .line(let bytes):
            let text = String(decoding: bytes, as: UTF8.self)
            guard !text.isEmpty else { throw Self.none(subject) }
            return text
        }
    }

    private static func none(_ subject: String) -> ExitCode {
        Output.complain("no \(subject) was entered")
        return ExitCode(64)
    }

    private enum Answer {
        case line([UInt8])
        case interrupted
    }

    /// Reads a line that the user may correct.
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

    /// Restores the terminal before a signal ends this process.
    private static func onEnd(_ restore: @escaping @Sendable () -> Void) -> [any DispatchSourceSignal] {
        [SIGINT, SIGTERM, SIGHUP].map { number in
            let earlier = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                restore()
                exit(128 + number)
            }
            source.setCancelHandler { signal(number, earlier) }
            source.resume()
            return source
        }
    }
}
