import Foundation
import TestSupport
import Testing

/// How `yonder` ran on a terminal of its own, where it could ask a question.
struct Dialogue: Decodable {
    var status: Int32
    /// All that was on the terminal.
    var text: String
    var asked: Bool
    /// Whether the terminal is as it was.
    var restored: Bool
}

extension Installation {
    /// Runs `yonder` on a terminal, and types an answer to its question.
    func ask(answer: String = "", _ arguments: [String]) async throws -> Dialogue {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Programs/terminal/ask.py")
        let outcome = try await Command(
            ["python3", script.path, answer, Self.program] + arguments, environment: environment, seconds: 60
        ).run()
        #expect(outcome.status == 0, "\(outcome.errors)")
        return try JSONDecoder().decode(Dialogue.self, from: Data(outcome.outputBytes))
    }
}
