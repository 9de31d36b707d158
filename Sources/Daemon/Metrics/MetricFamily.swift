/// A label of a series, such as `domain="photos"`.
struct MetricLabel: Hashable, Sendable {
    var name: String
    var value: String

    init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// All series of one name, and their text in the format that Prometheus reads (version 0.0.4:
/// https://prometheus.io/docs/instrumenting/exposition_formats/).
struct MetricFamily: Sendable {
    enum Value: Hashable, Sendable {
        case number(Double)
        case histogram(HistogramSeries.Value)
    }

    struct Sample: Sendable {
        var labels: [MetricLabel]
        var value: Value
    }

    /// Ends in `_total` for a counter; anything else is a gauge, unless its values are histograms.
    let name: String
    var samples: [Sample] = []

    init(name: String) {
        self.name = name
    }

    /// A family of one series without labels.
    init(name: String, _ value: Double) {
        self.name = name
        samples = [Sample(labels: [], value: .number(value))]
    }

    mutating func add(_ value: some BinaryInteger, _ labels: MetricLabel...) {
        samples.append(Sample(labels: labels, value: .number(Double(value))))
    }

    /// The lines of the family. Series stand in an order that does not change, so that two texts can be compared.
    var text: String {
        let type =
            if case .histogram = samples.first?.value { "histogram" } else {
                name.hasSuffix("_total") ? "counter" : "gauge"
            }
        var lines: [String] = []
        if let help = MetricNames.help[name] { lines.append("# HELP \(name) \(Self.escapedHelp(help))") }
        lines.append("# TYPE \(name) \(type)")
        lines += samples.map { self.lines(of: $0) }.sorted { $0.lexicographicallyPrecedes($1) }.flatMap(\.self)
        return lines.joined(separator: "\n") + "\n"
    }

    private func lines(of sample: Sample) -> [String] {
        switch sample.value {
        case .number(let number): return [Self.line(name, sample.labels, Self.text(number))]
        case .histogram(let histogram):
            var count = 0
            var lines: [String] = []
            let ends = HistogramSeries.bounds.map(Self.text) + ["+Inf"]
            for (end, added) in zip(ends, histogram.counts) {
                count += added
                lines.append(Self.line(name + "_bucket", sample.labels + [MetricLabel("le", end)], "\(count)"))
            }
            lines.append(Self.line(name + "_sum", sample.labels, Self.text(histogram.sum)))
            lines.append(Self.line(name + "_count", sample.labels, "\(count)"))
            return lines
        }
    }

    private static func line(_ name: String, _ labels: [MetricLabel], _ value: String) -> String {
        let list = labels.map { "\($0.name)=\"\(escaped($0.value))\"" }.joined(separator: ",")
        return name + (list.isEmpty ? "" : "{\(list)}") + " " + value
    }

    /// Whole numbers without a fraction.
    private static func text(_ number: Double) -> String {
        Int64(exactly: number).map(String.init) ?? "\(number)"
    }

    private static func escaped(_ value: String) -> String {
        escapedHelp(value).replacing("\"", with: "\\\"")
    }

    private static func escapedHelp(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
    }
}
