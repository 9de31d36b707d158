import Control
import CoreMetrics
import Foundation
import SystemPackage
import TestSupport
import Testing
import Web

@testable import Daemon

@Suite struct MetricsTexts {
    @Test("METRICS-1: counters, gauges and histograms are written as Prometheus reads them") func text() throws {
        let registry = MetricsRegistry()
        let label = [("domain", "a\"b\\c\nd")]
        Counter(label: "yonder_x_total", dimensions: label, factory: registry).increment(by: 2)
        Counter(label: "yonder_x_total", dimensions: label, factory: registry).increment()
        Gauge(label: "yonder_y", dimensions: [], factory: registry).record(1.5)
        for milliseconds in [3, 30, 120_000] {
            CoreMetrics.Timer(label: "yonder_z_seconds", dimensions: [], factory: registry)
                .recordMilliseconds(milliseconds)
        }
        let texts = Dictionary(uniqueKeysWithValues: registry.families.map { ($0.name, $0.text) })
        #expect(
            texts["yonder_x_total"] == """
                # TYPE yonder_x_total counter
                yonder_x_total{domain="a\\"b\\\\c\\nd"} 3

                """)
        #expect(texts["yonder_y"] == "# TYPE yonder_y gauge\nyonder_y 1.5\n")
        let lines = try #require(texts["yonder_z_seconds"]).split(separator: "\n")
        #expect(lines.first == "# TYPE yonder_z_seconds histogram")
        #expect(lines.contains("yonder_z_seconds_bucket{le=\"0.001\"} 0"))
        #expect(lines.contains("yonder_z_seconds_bucket{le=\"0.005\"} 1"))
        #expect(lines.contains("yonder_z_seconds_bucket{le=\"60\"} 2"))
        #expect(lines.suffix(3).contains("yonder_z_seconds_bucket{le=\"+Inf\"} 3"))
        #expect(lines.suffix(2) == ["yonder_z_seconds_sum 120.033", "yonder_z_seconds_count 3"])
    }

    @Test("METRICS-1: Docs/Metrics.md and the Grafana dashboard name the metrics that exist") func documented() throws {
        let top = FilePath(#filePath).removingLastComponent().appending("../..")
        func names(in file: String) throws -> Set<String> {
            let text = try String(contentsOfFile: top.appending(file).string, encoding: .utf8)
            let names = text.matches(of: /yonder_[a-z_]+/).map { match in
                ["_bucket", "_sum", "_count"].reduce(String(match.output)) {
                    $0.hasSuffix($1) ? String($0.dropLast($1.count)) : $0
                }
            }
            return Set(names)
        }
        #expect(try names(in: "Docs/Metrics.md") == Set(MetricNames.help.keys))
        let shown = try names(in: "Examples/Grafana/yonder.json")
        #expect(!shown.isEmpty && shown.isSubset(of: MetricNames.help.keys))
    }

    @Test(
        "METRICS-2: an address is a host and a port",
        arguments: [
            ("127.0.0.1:9464", "127.0.0.1:9464"), ("localhost:1", "localhost:1"), ("[::1]:65535", "[::1]:65535"),
            ("::1:80", nil), ("127.0.0.1", nil), (":80", nil), ("a:0", nil), ("a:65536", nil), ("a:b", nil),
            ("http://a:80", nil), ("[::1]80", nil),
        ])
    func addresses(_ text: String, _ address: String?) {
        #expect(ListeningAddress(text)?.description == address)
    }
}

extension RealMount {
    @Suite struct Metrics {
        /// The value of a series.
        private func value(_ series: String, in text: String) -> Double? {
            text.split(separator: "\n").first { $0.hasPrefix(series + " ") }
                .flatMap { Double($0.dropFirst(series.count + 1)) }
        }

        @Test("METRICS-1: yonder metrics shows domains, transfers, calls and waits") func shown() async throws {
            try await Installation.run { yonder in
                try yonder.write(String(repeating: "x", count: 5000), to: "far")
                try await yonder.mountSource("--cache-limit", "1G")
                try await yonder.shell("cat far >/dev/null; printf 123 > near")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(try await yonder.yonder("evict", yonder["near"]).status == 0)
                #expect(try await yonder.run("cat \"$1\"", yonder["near"]).output == "123")
                #expect(try await eventually { try await yonder.info("near").content == "materialized" })
                let outcome = try await yonder.yonder("metrics")
                let text = outcome.output
                let domain = "domain=\"mount\""
                #expect(value("yonder_received_bytes_total{\(domain)}", in: text) == 5003)
                #expect(value("yonder_events_total{\(domain),kind=\"evicted\"}", in: text) == 1)
                #expect(value("yonder_sent_bytes_total{\(domain)}", in: text) == 3)
                #expect(value("yonder_local_bytes{\(domain)}", in: text) == 5003)
                #expect(value("yonder_cache_limit_bytes{\(domain)}", in: text) == Double(1 << 30))
                #expect(value("yonder_materialized_items{\(domain),kind=\"file\"}", in: text) == 2)
                #expect(value("yonder_pending_items{\(domain)}", in: text) == 0)
                #expect(value("yonder_domain_connection{\(domain),state=\"online\"}", in: text) == 1)
                #expect(value("yonder_domain_connection{\(domain),state=\"offline\"}", in: text) == 0)
                #expect(value("yonder_events_total{\(domain),kind=\"created\"}", in: text) == 1)
                let call = "yonder_provider_call_seconds_count{\(domain),call=\"createItem\",outcome=\"success\"}"
                #expect(value(call, in: text) == 1)
                #expect(try #require(value("yonder_wait_seconds_count{\(domain),for=\"content\"}", in: text)) >= 1)
                #expect(try #require(value("yonder_resident_memory_bytes", in: text)) > 1e6)
                let described = Set(text.matches(of: /# HELP (\S+)/).map { String($0.output.1) })
                let typed = Set(text.matches(of: /# TYPE (\S+)/).map { String($0.output.1) })
                #expect(described == typed && typed == Set(MetricNames.help.keys))
            }
        }

        @Test("METRICS-2: the configuration says where metrics are served; an address that is taken is a warning")
        func served() async throws {
            let port = try await freePort()
            try await Installation.run { yonder in
                try Data("[metrics]\naddress = \"127.0.0.1:\(port)\"\n".utf8)
                    .write(to: URL(fileURLWithPath: yonder.directory["config.toml"].string))
                try await yonder.mountSource()
                var served = try await yonder.run("curl -sSi http://127.0.0.1:\(port)/metrics")
                // The daemon takes connections there a moment later than commands.
                _ = try await eventually(within: .seconds(20)) {
                    if served.status != 0 {
                        served = try await yonder.run("curl -sSi http://127.0.0.1:\(port)/metrics")
                    }
                    return served.status == 0
                }
                #expect(served.output.hasPrefix("HTTP/1.1 200"), "\(served.errors)")
                #expect(served.output.contains("yonder_items{domain=\"mount\"} "))
                #expect(served.output.lowercased().contains("content-type: text/plain; version=0.0.4"))
                let elsewhere = try await yonder.run("curl -sSi http://127.0.0.1:\(port)/")
                #expect(elsewhere.output.hasPrefix("HTTP/1.1 404"))
                try await Installation.run { other in
                    try FileManager.default.copyItem(
                        atPath: yonder.directory["config.toml"].string, toPath: other.directory["config.toml"].string)
                    try await other.mountSource()
                    func warnings() async throws -> [String] {
                        try await other.json(StatusReport.self, "status").daemon.warnings ?? []
                    }
                    let words = "on 127.0.0.1:\(port): Address already in use"
                    #expect(
                        try await eventually {
                            try await warnings().contains { $0.hasSuffix(words) }
                        })
                    #expect(try await yonder.yonder("shutdown").status == 0)
                    #expect(try await eventually(within: .seconds(30)) { try await warnings().isEmpty })
                }
            }
        }

        @Test("METRICS-2: an address that is none is told at the mount") func mistaken() async throws {
            try await Installation.run { yonder in
                try Data("[metrics]\naddress = \"9464\"\n".utf8)
                    .write(to: URL(fileURLWithPath: yonder.directory["config.toml"].string))
                let outcome = try await yonder.yonder("mount", yonder.source.string, yonder.mount.string)
                #expect(outcome.status == 0 && outcome.errors.contains("'9464' makes no sense for metrics.address"))
            }
        }
    }
}
