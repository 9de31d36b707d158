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
