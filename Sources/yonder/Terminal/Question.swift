import Control
import Foundation

/// A question that the user answers with yes or no.
enum Question {
    /// Whether questions and answers go through a terminal.
    static var canBeAsked: Bool { Terminal.isStandardInput && Terminal.isStandardError }

    /// - Returns: whether the answer is yes. No answer is no.
    static func ask(_ text: String) -> Bool {
        Output.write("yonder: " + LineText.escaped(text) + " [y/N] ", to: .standardError)
        return ["y", "yes"].contains(readLine()?.lowercased() ?? "")
    }
}
