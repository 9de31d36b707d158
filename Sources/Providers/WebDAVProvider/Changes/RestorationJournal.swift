import FileProvider
import FileProviderPaths

/// The items that are being restored from a trash bin whose server chooses the destination. Until an item has been moved to
/// the requested place, it may be at its former one, also after a restart.
struct RestorationJournal: Sendable {
    struct Record: Codable, Hashable, Sendable {
        /// Its former path among the user's files; nil where the server did not say.
        var location: [String]?
        /// Seconds since 1970.
        var begun: Int64
    }

    private let records: SurvivingRecords<Record>
    /// Records older than this are dropped, in seconds.
    private static let patience: Int64 = 90 * 86_400

    init(in store: ReportingStore) {
        records = SurvivingRecords("webdav.restorations", in: store)
        let oldest = FileTimestamp.now.seconds - Self.patience
        for (key, record) in records.all where record.begun < oldest { records.remove(key) }
    }

    func begin(_ identifier: String, from location: [String]?) throws {
        try records.save(
            Array(identifier.utf8), Record(location: location, begun: FileTimestamp.now.seconds))
    }

    func record(of identifier: String) -> Record? {
        records[Array(identifier.utf8)]
    }

    func end(_ identifier: String) { records.remove(Array(identifier.utf8)) }
}
