import CoreMetrics
import Synchronization

final class CounterSeries: CounterHandler, Sendable {
    private let count = Atomic<Int64>(0)

    var value: Int64 { count.load(ordering: .relaxed) }

    func increment(by amount: Int64) { count.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { count.store(0, ordering: .relaxed) }
}

final class GaugeSeries: MeterHandler, RecorderHandler, Sendable {
    private let present = Mutex(0.0)

    var value: Double { present.withLock { $0 } }

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { present.withLock { $0 = value } }
    func increment(by amount: Double) { present.withLock { $0 += amount } }
    func decrement(by amount: Double) { present.withLock { $0 -= amount } }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }
}

/// Durations in seconds, in buckets.
final class HistogramSeries: TimerHandler, RecorderHandler, Sendable {
    struct Value: Hashable, Sendable {
        /// How many values are at most each bound of ``HistogramSeries/bounds``, and above that of the bound before it; the last
        /// ones are above all bounds.
        var counts = [Int](repeating: 0, count: HistogramSeries.bounds.count + 1)
        var sum = 0.0
    }

    /// From a server beside this machine to one that hangs.
    static let bounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

    private let present = Mutex(Value())

    var value: Value { present.withLock { $0 } }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        let bucket = Self.bounds.firstIndex { value <= $0 } ?? Self.bounds.count
        present.withLock { present in
            present.counts[bucket] += 1
            present.sum += value
        }
    }
}
