import FileProvider
import Foundation
import PathAddressing
import SystemPackage

/// What is being brought back from a trash bin whose server decides where to: until it is where it was wanted, it may be
/// where it once was. It outlives the process.
struct RestorationJournal: Sendable {
    struct Record: Codable, Hashable, Sendable {
        /// The names that led to it among the user's files; nil where the server did not say.
        var location: [String]?
        /// Seconds since 1970.
        var begun: Int64
    }

    private let records: SurvivingRecords<Record>
    /// What nobody has gone on with for so long nobody will, in seconds.
    private static let patience: Int64 = 90 * 86_400

    init(in stateDirectory: FilePath) {
        records = SurvivingRecords(path: stateDirectory.appending("restoring"))
        let oldest = Int64(Date().timeIntervalSince1970) - Self.patience
        for (key, record) in records.all where record.begun < oldest { records.remove(key) }
    }

    func begin(_ identifier: String, from location: [String]?) {
        records.set(
            Array(identifier.utf8), Record(location: location, begun: Int64(Date().timeIntervalSince1970)))
    }

    func record(of identifier: String) -> Record? {
        records[Array(identifier.utf8)]
    }

    func end(_ identifier: String) { records.remove(Array(identifier.utf8)) }
}
