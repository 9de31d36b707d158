import Crypto
import FileProvider
import FileProviderPaths
import HTTPTransport
import Logging
import Synchronization

/// Multipart uploads. One that was interrupted continues, also after a restart: the parts that the server has are compared with
/// the content by their hashes, so that a part of other content is never used.
struct MultipartUploads: Sendable {
    typealias Part = (number: Int, tag: String)

    let client: S3Client
    let journal: UploadJournal
    let width: Int

    /// Begins an upload.
    ///
    /// - Parameter date: when it began, in seconds since 1970; 0 for an upload that the next start aborts.
    func begin(
        _ key: String, size: Int64, partSize: Int64, _ fields: HTTPFields, date: Int64
    ) async throws -> UploadRecord {
        let answer = try await client.send { [client] in
            client.request("POST", key, query: [("uploads", "")], fields: fields, body: .bytes([]))
        }
        guard let identifier = try XMLReader.document(answer.body).child("UploadId")?.trimmedText, !identifier.isEmpty
        else { throw FileProviderError(.malformedResponse, "the server gives an upload no identifier") }
        let record = UploadRecord(
            key: key, identifier: identifier, size: size, partSize: partSize,
            metadata: UploadRecord.metadata(fields), begun: date)
        try journal.add(record)
        return record
    }

    /// An earlier attempt of the same upload with the ETags of its parts, or a new one.
    func resume(
        _ key: String, size: Int64, partSize: Int64, _ fields: HTTPFields
    ) async throws -> (UploadRecord, parts: [Int: String]) {
        if let known = journal.record(for: key) {
            if known.size == size, known.partSize == partSize, known.metadata == UploadRecord.metadata(fields) {
                do {
                    return (known, try await parts(of: known))
                } catch let failure as S3Failure where failure.status == 404 {
                    journal.remove(known)
                } catch let failure as S3Failure where [403, 405, 501].contains(failure.status) {
                    client.logger.notice("parts of an upload are sent again: \(failure.error.message)")
                    await abort(known)
                    // The server may refuse that as well.
                    journal.remove(known)
                }
            } else {
                await abort(known)
            }
        }
        return (try await begin(key, size: size, partSize: partSize, fields, date: FileTimestamp.now.seconds), [:])
    }

    /// The ETags of the parts that the server has, by their numbers.
    private func parts(of record: UploadRecord) async throws -> [Int: String] {
        var (tags, marker): ([Int: String], String?) = ([:], nil)
        var check = CycleCheck<String>()
        while true {
            var query = [("uploadId", record.identifier)]
            if let marker { query.append(("part-number-marker", marker)) }
            let asked = query
            let answer = try await client.send { [client] in client.request("GET", record.key, query: asked) }
            let document = try XMLReader.document(answer.body)
            let before = tags.count
            for part in document.children where part.name.local == "Part" {
                // The upload has no other parts: a server that lists ever new ones gives nothing.
                guard let number = part.child("PartNumber").flatMap({ Int($0.trimmedText) }), number > 0,
                    number <= record.partCount, let tag = part.child("ETag")?.trimmedText
                else { continue }
                tags[number] = tag
            }
            guard document.child("IsTruncated")?.trimmedText == "true",
                let next = document.child("NextPartNumberMarker")?.trimmedText, next != marker
            else { return tags }
            try check.check(next, isEmpty: tags.count == before, of: "the parts of '\(record.key)'")
            marker = next
        }
    }

    /// Makes all parts, some at a time.
    ///
    /// - Parameter make: makes a part of a range, and returns its ETag.
    func makeParts(
        of record: UploadRecord, _ make: @escaping @Sendable (Int, Range<Int64>) async throws -> String
    ) async throws -> [Part] {
        let made = Mutex<[Part]>([])
        try await inParallel(Array(1...record.partCount), width: width) { number in
            let tag = try await make(number, record.range(ofPart: number))
            made.withLock { $0.append((number, tag)) }
        }
        return made.withLock { $0.sorted { $0.number < $1.number } }
    }

    /// - Returns: the object's ETag; where the server does not say it, the one that objects in such parts have.
    ///
    /// - Parameter recheck: called before each repetition, where the server does not check what the request changes.
    func complete(
        _ record: UploadRecord, _ parts: [Part], _ fields: HTTPFields = [:],
        recheck: (@Sendable () async throws -> Void)? = nil
    ) async throws -> String {
        let listed = parts.map { part in
            "<Part><PartNumber>\(part.number)</PartNumber><ETag>\(part.tag.escapedForXML)</ETag></Part>"
        }
        let body = Array(
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(listed.joined())</CompleteMultipartUpload>"
                .utf8)
        var fields = fields
        fields["Content-Type"] = "application/xml"
        // The server assembles the parts before it responds.
        let tag = try await client.sendForResult { [fields] in
            client.request(
                "POST", record.key, query: [("uploadId", record.identifier)], fields: fields, body: .bytes(body),
                recheck: recheck)
        }
        journal.remove(record)
        return tag ?? Self.tag(of: parts)
    }

    /// The ETag that servers give an object in parts.
    static func tag(of parts: [Part]) -> String {
        var hash = Insecure.MD5()
        for part in parts {
            let digits = Array(part.tag.utf8.filter { $0 != UInt8(ascii: "\"") })
            let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
                UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
            }
            hash.update(data: bytes)
        }
        return "\"\(hash.finalize().hexadecimal)-\(parts.count)\""
    }

    /// Aborts an upload, because its parts cost money.
    func abort(_ record: UploadRecord) async {
        do {
            _ = try await client.send { [client] in
                client.request("DELETE", record.key, query: [("uploadId", record.identifier)])
            }
            journal.remove(record)
        } catch let failure as S3Failure where failure.status == 404 {
            journal.remove(record)
        } catch {
            client.logger.debug("an upload could not be aborted: it is tried again at the next start")
        }
    }

    /// Aborts uploads that were begun a week ago and are not going on now.
    func abortLeftovers() async {
        for record in journal.records where FileTimestamp.now.seconds - record.begun > 7 * 86_400 {
            if client.ledger.isClaimed(.exactly(record.key)) { continue }
            await abort(record)
        }
    }
}
