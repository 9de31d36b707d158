import Control
import Foundation
import Synchronization

/// Shows progress on one line of a terminal that is rewritten. Prints nothing elsewhere.
final class ProgressLine: Sendable {
    private struct State {
        var isShown = false
        var last = ContinuousClock.now - .seconds(1)
        var rate = TransferRate()
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
        let line = state.withLock { state -> String? in
            let now = ContinuousClock.now
            guard now - state.last > .milliseconds(100) else { return nil }
            state.last = now
            state.isShown = true
            return Self.text(verb, event, rate: state.rate.perSecond(event.bytes, at: now), columns: Terminal.columns)
        }
        if let line { Output.write("\r\u{1B}[K" + line, to: .standardError) }
    }

    /// The line for an event, which does not reach the last column: some terminals begin another line there.
    ///
    /// - Parameter rate: in bytes per second; nil while it is unknown.
    static func text(_ verb: String, _ event: ControlEvent, rate: Int64?, columns: Int) -> String {
        let name = LineText.escaped(event.path.split(separator: "/").last.map(String.init) ?? "")
        let done = "\(verb) \(Output.count(event.items, "item")), \(ByteText.text(event.bytes))"
        let speed = rate.map { ", \(ByteText.text($0))/s" } ?? ""
        return String((done + speed + "  " + name).prefix(max(0, columns - 1)))
    }

    func clear() {
        guard state.withLock({ $0.isShown }) else { return }
        Output.write("\r\u{1B}[K", to: .standardError)
    }
}
