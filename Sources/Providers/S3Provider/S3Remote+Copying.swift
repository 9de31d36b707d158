import FileProvider
import Foundation
import HTTPTransport
import Logging
import PathAddressing

/// Copies that the server makes by itself.
extension S3Remote {
    /// Copies an object as it was listed, with what is written beside it.
    ///
    /// - Parameter metadata: replaces what is written beside it, when it says so.
    /// - Returns: the copy's tag. Where it is not the original's, the original may have been another one by then: some servers
    ///   compare what went in parts with other tags than they list, so that no condition can be made.
    func copy(_ original: S3Object, to key: String, _ metadata: HTTPFields? = nil) async throws -> String {
        if client.listsOtherTags { return try await copy(original, to: key, metadata, isConditional: false) }
        do {
            return try await copy(original, to: key, metadata, isConditional: true)
        } catch let failure as S3Failure where failure.isUnmetCondition && metadata == nil {
            guard try await listed(original.key)?.tag == original.tag else { throw failure }
            return try await copy(original, to: key, metadata, isConditional: false)
        }
    }

    private func copy(
        _ original: S3Object, to key: String, _ metadata: HTTPFields?, isConditional: Bool
    ) async throws -> String {
        if original.size > settings.largestCopy {
            return try await copyInParts(original, to: key, isConditional: isConditional)
        }
        return try await client.again { () async throws -> String in
            var fields = metadata ?? HTTPFields()
            fields["x-amz-copy-source"] = source(original)
            if isConditional { fields["x-amz-copy-source-if-match"] = original.tag }
            var request = client.request("PUT", key, fields: fields, repetition: .harmless)
            request.patience = .seconds(600)
            return try tag(of: try await client.attempt(request))
        }
    }

    private func source(_ object: S3Object) -> String {
        "/\(client.location.bucket)/\(PercentEncoding.encode(object.key, keeping: "/"))"
    }

    /// The tag in the answer to a copy: an error may come after a good status, for the answer begins before the work is
    /// done.
    private func tag(of answer: HTTPResponse) throws -> String {
        guard answer.head.isSuccess else { throw S3Failure(answer, bucket: client.location.bucket) }
        let document = try XMLReader.document(answer.body)
        guard let tag = document.child("ETag")?.trimmedText, document.name.local != "Error" else {
            throw S3Failure(answer, bucket: client.location.bucket)
        }
        return S3Object.quoted(tag)
    }

    private func copyInParts(
        _ original: S3Object, to key: String, isConditional: Bool
    ) async throws -> String {
        let head = try await client.send { [client] in client.request("HEAD", original.key) }.head
        var fields = HTTPFields()
        for field in head.fields {
            let name = field.name.lowercased()
            if name.hasPrefix("x-amz-meta-") || name == "content-type" { fields.add(field.name, field.value) }
        }
        let kept = fields
        let begun = try await client.send { [client] in
            client.request("POST", key, query: [("uploads", "")], fields: kept, body: .bytes([]))
        }
        guard let identifier = try XMLReader.document(begun.body).child("UploadId")?.trimmedText, !identifier.isEmpty
        else { throw FileProviderError(.malformedResponse, "the server gives an upload no identifier") }
        let partSize = max(min(settings.largestCopy, 1 << 30), original.size / 9_000 + 1)
        let record = UploadRecord(
            key: key, identifier: identifier, size: original.size, partSize: partSize, metadata: [:], begun: 0)
        // With the date 0 it is given up at the next start, whatever happens now.
        try uploads.add(record)
        do {
            let parts = try await copyParts(of: original, record, isConditional)
            let body = Self.completion(parts)
            let tag = try await client.again { () async throws -> String in
                var request = client.request(
                    "POST", key, query: [("uploadId", identifier)], fields: ["Content-Type": "application/xml"],
                    body: .bytes(body))
                request.patience = .seconds(600)
                return try self.tag(of: try await client.attempt(request))
            }
            uploads.remove(record)
            return tag
        } catch {
            await abort(record)
            throw error
        }
    }

    private func copyParts(
        of original: S3Object, _ record: UploadRecord, _ isConditional: Bool
    ) async throws -> [(number: Int, tag: String)] {
        let count = Int((record.size - 1) / record.partSize + 1)
        return try await withThrowingTaskGroup(of: (Int, String).self) { group in
            var (done, next): ([(number: Int, tag: String)], Int) = ([], 1)
            while done.count < count {
                while next <= count, next - done.count <= settings.width {
                    let number = next
                    next += 1
                    group.addTask {
                        (number, try await self.copy(part: number, of: original, record, isConditional))
                    }
                }
                if let (number, tag) = try await group.next() { done.append((number, tag)) }
            }
            return done.sorted { $0.number < $1.number }
        }
    }

    private func copy(
        part number: Int, of original: S3Object, _ record: UploadRecord, _ isConditional: Bool
    ) async throws -> String {
        let start = Int64(number - 1) * record.partSize
        let end = start + min(record.partSize, record.size - start)
        return try await client.again { () async throws -> String in
            var fields: HTTPFields = [
                "x-amz-copy-source": source(original), "x-amz-copy-source-range": "bytes=\(start)-\(end - 1)",
            ]
            if isConditional { fields["x-amz-copy-source-if-match"] = original.tag }
            var request = client.request(
                "PUT", record.key, query: [("partNumber", String(number)), ("uploadId", record.identifier)],
                fields: fields)
            request.patience = .seconds(600)
            return try tag(of: try await client.attempt(request))
        }
    }
}
