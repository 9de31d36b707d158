/// How many requests a server is sent at once: more while it answers as quickly as before, fewer when it has too much to do.
///
/// By Little's law a server that serves C requests at once answers L > C of them L / C times as slowly, and serves no more of
/// them in a second. So the time that answers take says how many the server serves, and the limit goes below that: a server
/// has other clients. Which of its answers are slow by nature the kind of a request says; each kind is compared with
/// itself.
struct ConcurrencyLimit: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// A request that was answered.
    struct Answer {
        /// What is compared with each other.
        var kind: String
        var startedAt: Instant
        var answeredAt: Instant
        /// How many requests were under way at the end, with this one.
        var running: Int
    }

    /// The answers of a while.
    private struct Window {
        var count = 0
        var peak = 0
        var times: [String: (count: Int, sum: Double, quickest: Double)] = [:]
    }

    /// How long answers of one kind take while nothing is too much for the server: the best of the last windows.
    private struct Baseline {
        var best: Double
        /// The best of the time before.
        var previous: Double
        var since: Instant
    }

    private let most: Double
    private var exact: Double
    /// Until the server is too slow for the first time, each quick answer allows one request more, as TCP's slow start does.
    private var isStarting = true
    /// The quickest answer of each kind while the limit is starting. Answers on new connections take several round trips;
    /// the quickest comes on an open connection, and is late only when the server is busy.
    private var quickest: [String: Double] = [:]
    private var window = Window()
    private var baselines: [String: Baseline] = [:]
    /// Answers to what was sent before say nothing about the present limit.
    private var changedAt: Instant?
    private var slowWindows = 0
    /// Above this the server was too slow; not tried again before that moment.
    private var ceiling: (limit: Double, until: Instant)?
    private var pause = Self.firstPause
    private var lastOverloadAt: Instant?

    /// Below it only errors bring the limit: answers are late for other reasons, too, such as a busy machine here.
    private static let leastByTime = 10.0
    private static let first = 16.0
    /// So many times as long as the best may answers take.
    private static let tolerance = 1.4
    /// What part of its places a server is left with when it has been too slow.
    private static let share = 0.9
    private static let baselineLife = Duration.seconds(30)
    private static let firstPause = Duration.seconds(1)
    private static let longestPause = Duration.seconds(60)
    private static let overloadPause = Duration.seconds(1)

    init(most: Int) {
        self.most = Double(max(1, most))
        exact = min(Self.first, self.most)
    }

    /// How many requests may be under way now.
    var limit: Int { max(1, Int(exact)) }

    mutating func note(_ answer: Answer) {
        if let changedAt, answer.startedAt < changedAt { return }
        let took = (answer.answeredAt - answer.startedAt).wholeSeconds
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

    /// A limit that is not reached says nothing about the server; background calls leave a quarter free.
    private func isInUse(_ running: Int) -> Bool { Double(running) >= (exact * 0.75).rounded(.down) }

    /// The server refused a request because it has too much to do, or broke the connection.
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
            // One slow window may be one of new connections, or chance.
            slowWindows += 1
            guard slowWindows > 1, inUse > Self.leastByTime else { return }
            lower(to: max(inUse / 2, Self.share * inUse / slowness, Self.leastByTime), at: now)
        } else {
            slowWindows = 0
            if isInUse(ended.peak) { raise(at: now) }
        }
    }

    /// How many times as long as usual the answers of a window have taken; nil where nothing can be compared.
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

extension Duration {
    fileprivate var wholeSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
