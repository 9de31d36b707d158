import Foundation
import TestSupport
import Testing

extension Installation {
    /// How a command on a terminal ended.
    struct Dialogue: Decodable {
        var status: Int32
        var text: String
        var asked: Bool
        var restored: Bool

        /// Whether the terminal got characters that control it, or that change the direction of text.
        var controlsTerminal: Bool {
            text.unicodeScalars.contains { [0x1B, 0x9B, 0x202E].contains($0.value) }
        }
    }

    /// Runs `yonder` on a terminal, and types an answer to its question.
    func onTerminal(_ arguments: [String], answer: String = "") async throws -> Dialogue {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Programs/terminal/ask.py")
        let outcome = try await Command(
            ["python3", script.path, answer, Self.program] + arguments, environment: environment, seconds: 60
        ).run()
        #expect(outcome.status == 0, "\(outcome.errors)")
        return try JSONDecoder().decode(Dialogue.self, from: Data(outcome.outputBytes))
    }
}
