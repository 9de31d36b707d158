import Crypto
import FileProvider
import Foundation
import HTTPTransport
import Logging
import PathAddressing
import Synchronization

/// Large files go in parts. An upload that was broken off goes on, also after a restart: the parts that the server has are
/// compared with the content by their hashes, so that nothing of another content is ever taken for it.
extension S3Remote {
    func upload(
        _ contents: ContentSource, to key: String, _ fields: HTTPFields, if condition: RemoteCondition,
        at path: RemotePath, willHaveTag: (String) -> Void
    ) async throws {
        let partSize = max(settings.partSize, (contents.size / 9_000 + 1).roundedUp(to: 1 << 20))
        var (record, there) = try await begun(key, size: contents.size, partSize: partSize, fields)
        for attempt in 1... {
            do {
                let parts = try await send(contents, record, there)
                // The last byte may have gone long ago.
                try await BlockingWork.run { try contents.confirm() }
                willHaveTag(Self.tag(of: parts))
                try await complete(record, parts, if: condition, at: path)
                uploads.remove(record)
                return
            } catch let failure as S3Failure where failure.code == "NoSuchUpload" && attempt == 1 {
                uploads.remove(record)
                (record, there) = try await begun(key, size: contents.size, partSize: partSize, fields)
            } catch let failure as S3Failure where failure.isUnmetCondition || failure.isRace {
                // It will be another upload, to another place or on another version.
                await abort(record)
                throw failure
            }
        }
    }

    /// What an earlier attempt left of the same upload, or a new one.
    private func begun(
        _ key: String, size: Int64, partSize: Int64, _ fields: HTTPFields
    ) async throws -> (UploadRecord, [Int: String]) {
        if let known = uploads.record(for: key) {
            if known.size == size, known.partSize == partSize, known.metadata == UploadRecord.metadata(fields) {
                do {
                    return (known, try await parts(of: known))
                } catch let failure as S3Failure where failure.status == 404 {
                    uploads.remove(known)
                }
            } else {
                await abort(known)
            }
        }
        let answer = try await client.send { [client] in
            client.request("POST", key, query: [("uploads", "")], fields: fields, body: .bytes([]))
        }
        guard let identifier = try XMLReader.document(answer.body).child("UploadId")?.trimmedText, !identifier.isEmpty
        else { throw FileProviderError(.malformedResponse, "the server gives an upload no identifier") }
        let record = UploadRecord(
            key: key, identifier: identifier, size: size, partSize: partSize,
            metadata: UploadRecord.metadata(fields), begun: S3Client.now)
        try uploads.add(record)
        return (record, [:])
    }

    /// The tags of the parts that the server has, by their numbers.
    private func parts(of record: UploadRecord) async throws -> [Int: String] {
        var (tags, marker): ([Int: String], String?) = ([:], nil)
        while true {
            var query = [("uploadId", record.identifier)]
            if let marker { query.append(("part-number-marker", marker)) }
            let asked = query
            let answer = try await client.send { [client] in client.request("GET", record.key, query: asked) }
            let document = try XMLReader.document(answer.body)
            for part in document.children where part.name.local == "Part" {
                guard let number = part.child("PartNumber").flatMap({ Int($0.trimmedText) }),
                    let tag = part.child("ETag")?.trimmedText
                else { continue }
                tags[number] = tag
            }
            guard document.child("IsTruncated")?.trimmedText == "true",
                let next = document.child("NextPartNumberMarker")?.trimmedText, next != marker
            else { return tags }
            marker = next
        }
    }

    private func send(
        _ contents: ContentSource, _ record: UploadRecord, _ there: [Int: String]
    ) async throws -> [(number: Int, tag: String)] {
        let count = Int((record.size - 1) / record.partSize + 1)
        return try await withThrowingTaskGroup(of: (Int, String).self) { group in
            var (sent, next): ([(number: Int, tag: String)], Int) = ([], 1)
            while sent.count < count {
                while next <= count, next - sent.count <= settings.width {
                    let number = next
                    next += 1
                    group.addTask {
                        (number, try await self.send(part: number, of: contents, record, there[number]))
                    }
                }
                if let (number, tag) = try await group.next() { sent.append((number, tag)) }
            }
            return sent.sorted { $0.number < $1.number }
        }
    }

    /// Sends a part, unless the server has just this one.
    private func send(
        part number: Int, of contents: ContentSource, _ record: UploadRecord, _ there: String?
    ) async throws -> String {
        let start = Int64(number - 1) * record.partSize
        let range = start..<(start + min(record.partSize, record.size - start))
        let hashes = try await hashes(of: contents, range)
        if let there, there.lowercased().contains(Signature.hexadecimal(hashes.md5)) {
            contents.advance(by: Int64(range.count))
            return there
        }
        let query = [("partNumber", String(number)), ("uploadId", record.identifier)]
        let answer = try await client.send { [client] in
            client.request(
                "PUT", record.key, query: query, fields: ["Content-MD5": hashes.md5Base64],
                body: .content(contents, range), payloadHash: hashes.sha256)
        }
        guard let tag = answer.fields["ETag"] else {
            throw FileProviderError(.malformedResponse, "the server gives a part no tag")
        }
        return tag
    }

    private func complete(
        _ record: UploadRecord, _ parts: [(number: Int, tag: String)], if condition: RemoteCondition,
        at path: RemotePath
    ) async throws {
        // Hours may have passed since it was looked at first, and some servers that check conditions do not do so here.
        try await require(condition, at: path)
        let body = Self.completion(parts)
        try await conditional(condition, at: record.key, of: path) { extra in
            var fields: HTTPFields = ["Content-Type": "application/xml"]
            for (name, value) in extra { fields[name] = value }
            let all = fields
            try await client.again { () async throws -> Void in
                var request = client.request(
                    "POST", record.key, query: [("uploadId", record.identifier)], fields: all, body: .bytes(body))
                // The server puts the parts together before it answers.
                request.patience = .seconds(600)
                let answer = try await client.attempt(request)
                // An error may come after a good status, for the answer begins before the work is done.
                guard answer.head.isSuccess, (try? XMLReader.document(answer.body))?.name.local != "Error" else {
                    throw S3Failure(answer, bucket: client.location.bucket)
                }
            }
        }
    }

    /// The tag that servers give an object in parts.
    private static func tag(of parts: [(number: Int, tag: String)]) -> String {
        var hash = Insecure.MD5()
        for part in parts {
            let digits = Array(part.tag.utf8.filter { $0 != UInt8(ascii: "\"") })
            let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
                UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
            }
            hash.update(data: bytes)
        }
        return "\"\(Signature.hexadecimal(Array(hash.finalize())))-\(parts.count)\""
    }

    static func completion(_ parts: [(number: Int, tag: String)]) -> [UInt8] {
        let listed = parts.map { part in
            let tag = part.tag.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(
                "\"", with: "&quot;")
            return "<Part><PartNumber>\(part.number)</PartNumber><ETag>\(tag)</ETag></Part>"
        }
        return Array(
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(listed.joined())</CompleteMultipartUpload>"
                .utf8)
    }

    /// Gives an upload up, so that nobody pays for its parts.
    func abort(_ record: UploadRecord) async {
        do {
            _ = try await client.send { [client] in
                client.request("DELETE", record.key, query: [("uploadId", record.identifier)])
            }
            uploads.remove(record)
        } catch let failure as S3Failure where failure.status == 404 {
            uploads.remove(record)
        } catch {
            client.logger.debug("an upload could not be given up: it is tried again at the next start")
        }
    }

    /// Gives up what nobody has come back for.
    func abortLeftovers() async {
        for record in uploads.records where S3Client.now - record.begun > 7 * 86_400 { await abort(record) }
    }
}

extension Int64 {
    fileprivate func roundedUp(to unit: Int64) -> Int64 { (self + unit - 1) / unit * unit }
}
