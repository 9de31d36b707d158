import Control
import Foundation
import Synchronization

/// Shows progress on one line of a terminal that is rewritten. Prints nothing elsewhere.
final class ProgressLine: Sendable {
    private struct State {
        var isShown = false
        var last = ContinuousClock.now - .seconds(1)
    }

    private let verb: String
    private let isUseful: Bool
    private let state = Mutex(State())

    /// - Parameter verb: the action, for example `downloaded`.
    init(_ verb: String, options: OutputOptions) {
        self.verb = verb
        isUseful = Terminal.isStandardError && !options.json
    }

    /// Shows an event, at most ten times a second.
    func show(_ event: ControlEvent) {
        guard isUseful else { return }
        let isDue = state.withLock { state in
            guard ContinuousClock.now - state.last > .milliseconds(100) else { return false }
            state.last = .now
            state.isShown = true
            return true
        }
        guard isDue else { return }
        let items = Output.count(event.items, "item")
        let name = event.path.split(separator: "/").last.map(String.init) ?? ""
        Output.write(
            "\r\u{1B}[K\(verb) \(items), \(ByteText.text(event.bytes))  \(Output.shown(String(name.prefix(40))))",
            to: .standardError)
    }

    /// Clears the line.
    func clear() {
        guard state.withLock({ $0.isShown }) else { return }
        Output.write("\r\u{1B}[K", to: .standardError)
    }
}
