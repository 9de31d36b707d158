import CoreMetrics
import Synchronization

/// Holds what the daemon's parts count and time (swift-metrics), until it is exported.
///
/// A family has one kind and any number of series, one for each set of dimensions. Series are never removed, so that a counter does
/// not go back when its domain is mounted again.
package final class MetricsRegistry: MetricsFactory, Sendable {
    struct Series: Hashable {
        var name: String
        var labels: [MetricLabel]
    }

    private struct State {
        var counters: [Series: CounterSeries] = [:]
        var gauges: [Series: GaugeSeries] = [:]
        var histograms: [Series: HistogramSeries] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    /// All families with their present values.
    var families: [MetricFamily] {
        let (counters, gauges, histograms) = state.withLock { ($0.counters, $0.gauges, $0.histograms) }
        var families: [String: MetricFamily] = [:]
        func add(_ series: Series, _ value: MetricFamily.Value) {
            families[series.name, default: MetricFamily(name: series.name)].samples
                .append(MetricFamily.Sample(labels: series.labels, value: value))
        }
        for (series, counter) in counters { add(series, .number(Double(counter.value))) }
        for (series, gauge) in gauges { add(series, .number(gauge.value)) }
        for (series, histogram) in histograms { add(series, .histogram(histogram.value)) }
        return Array(families.values)
    }

    // MARK: - MetricsFactory

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        state.withLock { $0.counters.value(for: Series(label, dimensions)) { CounterSeries() } }
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        state.withLock { $0.gauges.value(for: Series(label, dimensions)) { GaugeSeries() } }
    }

    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        let series = Series(label, dimensions)
        return state.withLock { state -> any RecorderHandler in
            aggregate
                ? state.histograms.value(for: series) { HistogramSeries() }
                : state.gauges.value(for: series) { GaugeSeries() }
        }
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        state.withLock { $0.histograms.value(for: Series(label, dimensions)) { HistogramSeries() } }
    }

    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}
}

extension MetricsRegistry.Series {
    init(_ name: String, _ dimensions: [(String, String)]) {
        self.init(name: name, labels: dimensions.map { MetricLabel($0.0, $0.1) })
    }
}

extension Dictionary where Key == MetricsRegistry.Series {
    fileprivate mutating func value(for series: Key, else make: () -> Value) -> Value {
        if let value = self[series] { return value }
        let value = make()
        self[series] = value
        return value
    }
}

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
