import Logging
import Synchronization

/// How much the daemon logs. It can be changed while the daemon runs, for all loggers at once.
package final class AdjustableLogLevel: Sendable {
    private let level: Mutex<Logger.Level>

    package init(_ level: Logger.Level) {
        self.level = Mutex(level)
    }

    package var current: Logger.Level {
        get { level.withLock { $0 } }
        set { level.withLock { $0 = newValue } }
    }
}
