/// The names of all metrics, with what they mean. Docs/Metrics.md explains them.
enum MetricNames {
    static let help = [
        "yonder_build_info": "Always 1; the label says which version runs.",
        "yonder_start_time_seconds": "When the daemon was started, in seconds since 1970.",
        "yonder_restarts_total": "How often the keeper has started the daemon again.",
        "yonder_cpu_seconds_total": "The processor time of the daemon.",
        "yonder_resident_memory_bytes": "The resident memory of the daemon.",
        "yonder_open_file_descriptors": "How many files the daemon has open.",
        "yonder_domain_connection": "1 for the state of the domain's connection, 0 for the others.",
        "yonder_items": "The items that the domain knows.",
        "yonder_materialized_items": "The items whose content is local.",
        "yonder_local_bytes": "The bytes of local content.",
        "yonder_cache_limit_bytes": "The limit of local content; absent for none.",
        "yonder_pending_items": "The items with changes that the remote does not have.",
        "yonder_pending_bytes": "The content bytes of these changes.",
        "yonder_failed_items": "The items with a change that could not be sent the last time.",
        "yonder_conflict_copies": "The conflict copies that exist.",
        "yonder_transfers": "The transfers under way.",
        "yonder_warnings": "The warnings that 'yonder status' shows.",
        "yonder_received_bytes_total": "The content bytes received since the domain was mounted.",
        "yonder_sent_bytes_total": "The content bytes sent since the domain was mounted.",
        "yonder_events_total": "The events that 'yonder events' shows.",
        "yonder_provider_call_seconds": "How long the provider's calls took, and how they ended.",
        "yonder_wait_seconds": "How long system calls waited for the remote.",
    ]
}
