/// The number of concurrent requests to a server: it rises while response times stay the same and falls on overload.
///
/// By Little's law a server that processes C requests concurrently responds L / C times as slowly to L > C requests, with the
/// same throughput. So response times show how many requests the server processes. The limit stays below, because a server has
/// other clients. Requests of different kinds take different times; each kind is compared with itself.
struct ConcurrencyLimit: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// A request with its response time.
    struct Answer {
        /// The kind of requests with which it is compared.
        var kind: String
        var startedAt: Instant
        var answeredAt: Instant
        /// The number of requests in flight at the end, including this one.
        var running: Int
    }

    /// The response times since the last decision.
    private struct Window {
        var count = 0
        var peak = 0
        var times: [String: (count: Int, sum: Double, quickest: Double)] = [:]
    }

    /// The response time of one kind without overload: the best of the last windows.
    private struct Baseline {
        var best: Double
        /// The best of the previous period.
        var previous: Double
        var since: Instant
    }

    let most: Double
    private var exact: Double
    /// Until the first overload, each quick response raises the limit by one, as in TCP's slow start.
    private var isStarting = true
    /// The quickest answer of each kind while the limit is starting. Answers on new connections take several round trips;
    /// the quickest comes on an open connection, and is late only when the server is busy.
    private var quickest: [String: Double] = [:]
    private var window = Window()
    private var baselines: [String: Baseline] = [:]
    /// Responses to earlier requests say nothing about the present limit.
    private var changedAt: Instant?
    private var slowWindows = 0
    /// The limit at which the server was overloaded; it is not exceeded before that time.
    private var ceiling: (limit: Double, until: Instant)?
    private var pause = Self.firstPause
    private var lastOverloadAt: Instant?

    /// Only errors lower the limit further, because responses are also late for other reasons, such as local load.
    private static let leastByTime = 10.0
    private static let first = 16.0
    /// The ratio to the best response time that is no overload.
    private static let tolerance = 1.4
    /// The part of the server's capacity that is used after an overload.
    private static let share = 0.9
    private static let baselineLife = Duration.seconds(30)
    private static let firstPause = Duration.seconds(1)
    private static let longestPause = Duration.seconds(60)
    private static let overloadPause = Duration.seconds(1)

    init(most: Int) {
        self.most = Double(max(1, most))
        exact = min(Self.first, self.most)
    }

    var limit: Int { max(1, Int(exact)) }

    mutating func note(_ answer: Answer) {
        if let changedAt, answer.startedAt < changedAt { return }
        let took = (answer.answeredAt - answer.startedAt) / .seconds(1)
        window.count += 1
        window.peak = max(window.peak, answer.running)
        let (count, sum, least) = window.times[answer.kind] ?? (0, 0, took)
        window.times[answer.kind] = (count + 1, sum + took, min(least, took))
        if isStarting { start(with: answer, took: took) }
        if window.count >= max(4, limit) { close(at: answer.answeredAt) }
    }

    private mutating func start(with answer: Answer, took: Double) {
        if quickest.count > 64 { quickest = [:] }
        let best = min(quickest[answer.kind] ?? took, took)
        quickest[answer.kind] = best
        guard took <= Self.tolerance * max(best, 1e-6), isInUse(answer.running) else { return }
        exact = min(most, exact + 1)
    }

    /// Whether the limit is nearly reached: otherwise it says nothing about the server. Background calls leave a quarter free.
    private func isInUse(_ running: Int) -> Bool { Double(running) >= (exact * 0.75).rounded(.down) }

    /// Records that the server refused a request because of overload, or broke the connection.
    mutating func noteOverload(startedAt: Instant, at now: Instant) {
        // Requests that were sent before the limit was lowered say nothing about the lower limit.
        if let last = lastOverloadAt, startedAt < last { return }
        let isSameOverload = lastOverloadAt.map { now - $0 < Self.overloadPause } ?? false
        lastOverloadAt = now
        lower(to: max(1, exact / 2), at: now, isSameOverload: isSameOverload)
    }

    private mutating func close(at now: Instant) {
        let ended = window
        window = Window()
        guard let slowness = slowness(of: ended, at: now) else { return }
        let inUse = min(exact, Double(ended.peak))
        if slowness > Self.tolerance {
            // One slow window may be due to new connections or chance.
            slowWindows += 1
            guard slowWindows > 1, inUse > Self.leastByTime else { return }
            lower(to: max(inUse / 2, Self.share * inUse / slowness, Self.leastByTime), at: now)
        } else {
            slowWindows = 0
            if isInUse(ended.peak) { raise(at: now) }
        }
    }

    /// The ratio of a window's response times to the usual ones; nil without comparable requests.
    private mutating func slowness(of window: Window, at now: Instant) -> Double? {
        var (weight, total) = (0.0, 0.0)
        for (kind, times) in window.times where times.count >= 3 {
            let mean = max(times.sum / Double(times.count), 1e-6)
            var baseline = baselines[kind] ?? Baseline(best: mean, previous: mean, since: now)
            if now - baseline.since > Self.baselineLife {
                baseline = Baseline(best: mean, previous: baseline.best, since: now)
            }
            baseline.best = min(baseline.best, mean)
            if baselines.count > 64 { baselines = [:] }
            baselines[kind] = baseline
            let usual = isStarting ? quickest[kind] ?? times.quickest : min(baseline.best, baseline.previous)
            weight += Double(times.count)
            total += Double(times.count) * (isStarting ? times.quickest : mean) / max(usual, 1e-6)
        }
        return weight > 0 ? total / weight : nil
    }

    private mutating func lower(to limit: Double, at now: Instant, isSameOverload: Bool = false) {
        exact = min(exact, limit)
        isStarting = false
        ceiling = (exact, now + pause)
        if !isSameOverload { pause = min(Self.longestPause, pause * 2) }
        changedAt = now
        slowWindows = 0
        window = Window()
    }

    private mutating func raise(at now: Instant) {
        if let ceiling, exact >= ceiling.limit, now < ceiling.until { return }
        if exact >= most { isStarting = false }
        guard !isStarting else { return }
        exact = min(most, exact + max(1, exact / 10))
        if let ceiling, exact >= ceiling.limit * 2 {
            self.ceiling = nil
            pause = Self.firstPause
        }
        changedAt = now
    }
}
