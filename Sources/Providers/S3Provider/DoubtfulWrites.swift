import Crypto
import Foundation
import HTTPTransport
import PathAddressing

/// What was sent to be written, and whose connection broke before an answer came: by key, and by the tag that it has if it
/// arrives after all. That may be long after the same was sent again and answered, and deleted: then it is nobody's, and
/// must not keep a directory that is to be removed. What is there by an answer, or was shown to anybody, is no such thing
/// until it has been deleted.
///
/// What is forgotten keeps its directory, which is then shown again.
final class DoubtfulWrites: Sendable {
    private struct Record: Codable, Sendable {
        /// Seconds since 1970.
        var at: Int64
        /// Whether it is known to be there.
        var isThere: Bool?
    }

    private let records: SurvivingRecords<Record>
    /// In seconds.
    private static let memory: Int64 = 3600
    private static let most = 2000

    init(in store: ReportingStore) {
        records = SurvivingRecords("s3.doubtful", in: store)
    }

    /// - Parameter isThere: whether the object had that content before.
    func note(_ key: String, tag: String, isThere: Bool = false) {
        let now = S3Client.now
        let all = records.all
        if all.count >= Self.most {
            let old = all.filter { now - $0.record.at > Self.memory }
            for (key, _) in old.isEmpty ? all : old { records.remove(key) }
        }
        let name = Self.name(key, tag)
        records.set(name, Record(at: now, isThere: isThere || records[name]?.isThere == true))
    }

    /// The server has answered that it has it, or has shown it.
    func noteThere(_ key: String, tag: String) {
        let name = Self.name(key, tag)
        guard var record = records[name], record.isThere != true else { return }
        record.isThere = true
        records.set(name, record)
    }

    /// The server has answered that nothing has the key any more.
    func noteDeleted(_ key: String) {
        let start = Array(key.utf8) + [0]
        for (name, record) in records.all where record.isThere == true && name.starts(with: start) {
            records.set(name, Record(at: record.at))
        }
    }

    /// Whether an object is what such a writing makes.
    func hold(_ object: S3Object) -> Bool {
        guard let record = records[Self.name(object.key, object.tag)], record.isThere != true else { return false }
        return S3Client.now - record.at <= Self.memory
    }

    private static func name(_ key: String, _ tag: String) -> [UInt8] { Array(key.utf8) + [0] + Array(tag.utf8) }
}

extension HTTPRequest {
    /// The tag that the object has which this writes; nil where that cannot be told.
    var tagOfWritten: String? {
        guard method == "PUT" else { return nil }
        if fields["x-amz-copy-source"] != nil { return fields["x-amz-copy-source-if-match"].map(S3Object.quoted) }
        if let digest = fields["Content-MD5"].flatMap({ Data(base64Encoded: $0) }) {
            return S3Object.quoted(Signature.hexadecimal(Array(digest)))
        }
        guard case .bytes(let bytes)? = body else { return nil }
        return S3Object.quoted(Signature.hexadecimal(Array(Insecure.MD5.hash(data: bytes))))
    }
}
