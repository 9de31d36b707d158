import Control
import Foundation

enum Question {
    /// Whether questions and answers go through a terminal.
    static var canBeAsked: Bool { Terminal.isStandardInput && Terminal.isStandardError }

    /// Reads the answer on a Dispatch thread, because with one processor no other task would run until it is given.
    ///
    /// - Returns: whether the answer is yes. No answer is no.
    static func ask(_ text: String) async -> Bool {
        Output.write("yonder: " + LineText.escaped(text) + " [y/N] ", to: .standardError)
        let answer = await withCheckedContinuation { (continuation: CheckedContinuation<String?, Never>) in
            DispatchQueue.global().async { continuation.resume(returning: readLine()) }
        }
        return ["y", "yes"].contains(answer?.lowercased() ?? "")
    }
}
