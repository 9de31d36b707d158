/// How long the keeper waits before it starts the worker again.
///
/// A worker that ran for a second after it was ready is started again at once. Otherwise the pauses grow, and after
/// five such crashes within a minute each pause is the longest. A worker that was killed has not crashed: it is started again
/// at once, or after a short pause.
package struct RestartSchedule: Sendable {
    package static let pauses = [0, 100, 200, 500, 1000, 2000, 5000]
    private static let minute = 60_000
    private static let shortest = 1000
    private static let pauseAfterKill = 100

    private let longest: Int
    /// The number of crashes in a row that came early.
    package private(set) var streak = 0
    /// The times of the early crashes of the last minute, in milliseconds.
    private var crashes: [Int] = []
    /// Whether the worker has crashed early at least five times within a minute.
    package private(set) var isLooping = false

    /// - Parameter longest: the longest pause in milliseconds.
    package init(longest: Int = 5000) {
        self.longest = longest
    }

    /// Records a crash.
    ///
    /// - Parameters:
    ///   - now: the time of the crash in milliseconds.
    ///   - ready: the time at which the worker was ready; nil if it was not.
    /// - Returns: the pause in milliseconds.
    package mutating func pause(afterCrashAt now: Int, readySince ready: Int?) -> Int {
        crashes.removeAll { $0 <= now - Self.minute }
        if let ready, now - ready >= Self.shortest {
            streak = 0
            isLooping = false
            return 0
        }
        crashes.append(now)
        let pause = Self.pauses[min(streak, Self.pauses.count - 1)]
        streak += 1
        isLooping = crashes.count >= 5
        return min(isLooping ? longest : pause, longest)
    }

    /// The pause in milliseconds after a worker that was killed, by an administrator or by the kernel for want of memory. It is no
    /// sign that the next one will fail.
    package func pause(afterKillAt now: Int, readySince ready: Int?) -> Int {
        if let ready, now - ready >= Self.shortest { return 0 }
        return min(Self.pauseAfterKill, longest)
    }
}
