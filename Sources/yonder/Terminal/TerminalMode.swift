import Foundation
import Glibc

/// Other settings of a terminal, until they are restored; also before a signal ends this process.
final class TerminalMode {
    private let signals: [any DispatchSourceSignal]
    private let restoring: @Sendable () -> Void

    /// Turns off the echo, lines and the signals of the terminal: Ctrl-C arrives as a byte, and cannot end this process before the
    /// settings are back.
    ///
    /// - Parameter leaving: the text that a terminal gets before its settings are restored.
    /// - Returns: nil for a file that is no terminal.
    init?(ofKeysOn descriptor: Int32, leaving: String = "") {
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else { return nil }
        let before = settings
        settings.c_lflag &= ~tcflag_t(ECHO | ISIG | ICANON | IEXTEN)
        settings.c_iflag &= ~tcflag_t(IXON)
        restoring = {
            var settings = before
            if !leaving.isEmpty { Output.write(leaving, to: .standardOutput) }
            tcsetattr(descriptor, TCSAFLUSH, &settings)
        }
        signals = Self.onEnd(restoring)
        tcsetattr(descriptor, TCSAFLUSH, &settings)
    }

    func restore() {
        for source in signals { source.cancel() }
        restoring()
    }

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
