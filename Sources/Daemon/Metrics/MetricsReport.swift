import Control
import FileProvider
import Syscalls

/// The state of the daemon and its mounted domains as metrics, for Prometheus.
struct MetricsReport: Sendable {
    let registry: MetricsRegistry
    let status: StatusReport
    /// The number of conflict copies, by the name of the domain.
    let conflicts: [String: Int]
    let startedAt: FileTimestamp
    let usage: ProcessUsage

    /// The text that Prometheus reads; families in the order of their names.
    var text: String {
        (registry.families + daemonFamilies + domainFamilies).filter { !$0.samples.isEmpty }
            .sorted { $0.name < $1.name }.map(\.text).joined()
    }

    private var daemonFamilies: [MetricFamily] {
        var build = MetricFamily(name: "yonder_build_info")
        build.add(1, MetricLabel("version", status.version))
        var families = [
            build,
            MetricFamily(name: "yonder_start_time_seconds", Double(startedAt.seconds)),
            MetricFamily(name: "yonder_restarts_total", Double(status.daemon.restarts)),
            MetricFamily(name: "yonder_cpu_seconds_total", usage.processorSeconds),
        ]
        if let bytes = usage.residentBytes {
            families.append(MetricFamily(name: "yonder_resident_memory_bytes", Double(bytes)))
        }
        if let files = usage.openFiles {
            families.append(MetricFamily(name: "yonder_open_file_descriptors", Double(files)))
        }
        return families
    }

    private var domainFamilies: [MetricFamily] {
        var connection = MetricFamily(name: "yonder_domain_connection")
        var materialized = MetricFamily(name: "yonder_materialized_items")
        var transfers = MetricFamily(name: "yonder_transfers")
        var limit = MetricFamily(name: "yonder_cache_limit_bytes")
        for domain in status.domains {
            let label = MetricLabel("domain", domain.name)
            for state in DomainStatus.Connection.allCases {
                connection.add(domain.connection == state ? 1 : 0, label, MetricLabel("state", state.rawValue))
            }
            materialized.add(domain.items.materializedFiles, label, MetricLabel("kind", "file"))
            materialized.add(domain.items.materializedDirectories, label, MetricLabel("kind", "directory"))
            for direction in ["download", "upload"] {
                transfers.add(
                    domain.transfers.count { $0.direction == direction }, label, MetricLabel("direction", direction))
            }
            if let bytes = domain.bytes.limit { limit.add(bytes, label) }
        }
        return [
            connection, materialized, transfers, limit,
            family("yonder_items", \.items.known),
            family("yonder_local_bytes", \.bytes.local),
            family("yonder_pending_items", \.pending.items),
            family("yonder_pending_bytes", \.pending.bytes),
            family("yonder_failed_items", \.failed),
            family("yonder_warnings", \.warnings.count),
            family("yonder_received_bytes_total") { $0.received ?? 0 },
            family("yonder_sent_bytes_total") { $0.sent ?? 0 },
            family("yonder_conflict_copies") { conflicts[$0.name] ?? 0 },
        ]
    }

    /// One series for each domain.
    private func family(_ name: String, _ value: (DomainStatus) -> some BinaryInteger) -> MetricFamily {
        var family = MetricFamily(name: name)
        for domain in status.domains { family.add(value(domain), MetricLabel("domain", domain.name)) }
        return family
    }
}
