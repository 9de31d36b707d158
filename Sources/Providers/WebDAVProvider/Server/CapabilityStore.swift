import FileProviderPaths

/// Stores the capabilities of the server, so that it is probed once.
struct CapabilityStore: Sendable {
    private let records: SurvivingRecords<ServerCapabilities>
    private static let key = Array("server".utf8)

    init(in store: ReportingStore) {
        records = SurvivingRecords("webdav.capabilities", in: store)
    }

    var capabilities: ServerCapabilities? { records[Self.key] }

    /// Drops the capabilities of a server with another `Server` header: it is probed again.
    func forget(unless server: String?) {
        guard let known = capabilities else { return }
        if known.server != server { records.remove(Self.key) }
    }

    func keep(_ capabilities: ServerCapabilities) { records.set(Self.key, capabilities) }
}
