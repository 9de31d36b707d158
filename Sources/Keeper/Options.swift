/// The command line of the keeper: `yonder-keeper [--background] [--watchdog SECONDS] [--longest-pause SECONDS]
/// [--crash-report FILE] -- PROGRAM ARGUMENTS...`.
package struct Options: Hashable, Sendable {
    package var isInBackground = false
    /// The time in milliseconds within which the worker must report that it is alive; 0 for no limit.
    package var watchdog = 60_000
    /// The longest pause before a restart, in milliseconds.
    package var longestPause = 5000
    /// The file that tells of workers that crash in a loop.
    package var crashReport: String?
    /// The worker's program and its arguments.
    package var worker: [String]

    package static let usage =
        "usage: yonder-keeper [--background] [--watchdog SECONDS] [--longest-pause SECONDS] [--crash-report FILE] "
        + "-- PROGRAM [ARGUMENT...]"

    /// - Parameter arguments: without the keeper's own name.
    /// - Returns: nil for wrong usage.
    package init?(_ arguments: [String]) {
        guard let end = arguments.firstIndex(of: "--"), end + 1 < arguments.count else { return nil }
        worker = Array(arguments[(end + 1)...])
        guard worker[0].hasPrefix("/") else { return nil }
        var options = arguments[..<end]
        while let option = options.popFirst() {
            switch option {
            case "--background": isInBackground = true
            case "--watchdog":
                guard let time = Self.milliseconds(options.popFirst()) else { return nil }
                watchdog = time
            case "--longest-pause":
                guard let time = Self.milliseconds(options.popFirst()) else { return nil }
                longestPause = time
            case "--crash-report":
                guard let path = options.popFirst(), path.hasPrefix("/") else { return nil }
                crashReport = path
            default: return nil
            }
        }
    }

    private static func milliseconds(_ text: String?) -> Int? {
        guard let text, let seconds = Double(text), seconds >= 0, seconds <= 86_400 else { return nil }
        return Int(seconds * 1000)
    }
}
