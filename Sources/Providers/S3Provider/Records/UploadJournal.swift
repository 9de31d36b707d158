import FileProvider
import FileProviderPaths
import HTTPTransport

/// A multipart upload in progress.
struct UploadRecord: Codable, Hashable, Sendable {
    var key: String
    var identifier: String
    var size: Int64
    var partSize: Int64
    /// The object's metadata, which is sent at the beginning.
    var metadata: [String: String]
    /// Seconds since 1970.
    var begun: Int64

    var partCount: Int { Int((size - 1) / partSize + 1) }

    func range(ofPart number: Int) -> Range<Int64> {
        let start = Int64(number - 1) * partSize
        return start..<(start + min(partSize, size - start))
    }

    static func metadata(_ fields: HTTPFields) -> [String: String] {
        Dictionary(fields.map { ($0.name, $0.value) }) { $1 }
    }
}

/// The multipart uploads in progress. A record is on the disk before the first part is sent, so that a restarted daemon can
/// continue or abort the upload.
final class UploadJournal: Sendable {
    private let uploads: SurvivingRecords<UploadRecord>

    init(in store: ReportingStore) {
        uploads = SurvivingRecords("s3.uploads", in: store)
    }

    /// Records with impossible numbers are damaged and left out.
    var records: [UploadRecord] {
        uploads.all.map(\.record).filter { $0.size > 0 && $0.partSize > 0 && $0.begun >= 0 }
    }

    func record(for key: String) -> UploadRecord? {
        records.first { $0.key.utf8.elementsEqual(key.utf8) }
    }

    func add(_ record: UploadRecord) throws { try uploads.save(Self.key(record), record, .synced) }

    func remove(_ record: UploadRecord) { uploads.remove(Self.key(record)) }

    private static func key(_ record: UploadRecord) -> [UInt8] {
        Array(record.key.utf8) + [0] + Array(record.identifier.utf8)
    }
}
