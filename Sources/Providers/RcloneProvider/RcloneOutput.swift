import FileProvider
import Foundation
import Logging
import ProgramProvider
import Synchronization

/// What a process of rclone's writes.
final class RcloneOutput: Sendable {
    private struct State {
        var lines: [String] = []
        var end: String?
        var reason: String?
    }

    let port = OneShot<Int>()
    /// The last lines, when it has ended.
    let text = OneShot<String>()
    /// Notified when it has ended.
    let changes = ChangeSignal()
    private let state = Mutex(State())
    private let rate = LogRate()
    private let logger: Logger?
    private static let mostLines = 20

    init(logger: Logger?) {
        self.logger = logger
    }

    /// What it has said, when it has ended.
    var end: String? { state.withLock { $0.end } }

    /// Why it has ended: its status, and its last line if that is of an error.
    var reason: String? { state.withLock { $0.reason } }

    func take(_ bytes: [UInt8]) {
        let line = String(decoding: bytes.prefix(1000), as: UTF8.self)
        if Self.isAnswer(line) { return }
        if let logger { rate.log(line, in: logger) }
        state.withLock { $0.lines = ($0.lines + [line]).suffix(Self.mostLines) }
        let address = "remote control on http://127.0.0.1:"
        if let found = line.range(of: address), let number = Int(line[found.upperBound...].prefix { $0.isNumber }) {
            port.give(.success(number))
        }
    }

    /// rclone calls it an error that a directory is missing which was asked for.
    private static func isAnswer(_ line: String) -> Bool {
        line.contains("rc: \"operations/list\": error:") && line.contains("directory not found")
    }

    private static func isNotice(_ line: String) -> Bool { line.contains(" NOTICE: ") || line.contains(" INFO  : ") }

    func finish(_ end: ProgramProcess.End) {
        let said = state.withLock { state in
            let said = state.lines.joined(separator: "\n")
            guard state.end == nil else { return said }
            state.end = said.isEmpty ? "rclone has ended" : said
            let ending = if case .exited(let status) = end { status } else { "a line that is too long" }
            // A process that is killed says nothing of it: its last line may be the one of its start.
            let last = state.lines.last.flatMap { Self.isNotice($0) ? nil : ": \($0.suffix(300))" }
            state.reason = ending + (last ?? "")
            return said
        }
        changes.notify()
        text.give(.success(said))
        port.give(.failure(FileProviderError(.serverUnreachable, "rclone has ended")))
    }
}
