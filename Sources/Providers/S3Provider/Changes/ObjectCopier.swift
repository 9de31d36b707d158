import FileProvider
import HTTPTransport

/// Copies objects on the server.
struct ObjectCopier: Sendable {
    let client: S3Client
    let multipart: MultipartUploads
    /// The size, in bytes, up to which the server copies an object with one request.
    let largestCopy: Int64

    /// Copies an object as it was listed, with its metadata.
    ///
    /// - Parameter metadata: replaces the object's, where it says so.
    /// - Returns: the copy's ETag. Where it is not the original's, the original may have changed before: some servers compare
    ///   multipart objects with other ETags than they list, so that no precondition is possible.
    func copy(_ original: S3Object, to key: String, _ metadata: HTTPFields = [:]) async throws -> String {
        if client.listsOtherTags { return try await copy(original, to: key, metadata, isConditional: false) }
        do {
            return try await copy(original, to: key, metadata, isConditional: true)
        } catch let failure as S3Failure where failure.isUnmetCondition && metadata.isEmpty {
            guard try await client.listed(original.key)?.tag == original.tag else { throw failure }
            return try await copy(original, to: key, metadata, isConditional: false)
        }
    }

    private func copy(
        _ original: S3Object, to key: String, _ metadata: HTTPFields, isConditional: Bool
    ) async throws -> String {
        if original.size > largestCopy { return try await copyInParts(original, to: key, isConditional) }
        let fields = fields(metadata, source: original, isConditional)
        return try Self.require(
            await client.sendLong { client.request("PUT", key, fields: fields, repetition: .harmless) })
    }

    private func fields(_ fields: HTTPFields, source: S3Object, _ isConditional: Bool) -> HTTPFields {
        var fields = fields
        fields["x-amz-copy-source"] =
            "/\(client.location.bucket)/\(PercentEncoding.encode(source.key, keeping: "/"))"
        if isConditional { fields["x-amz-copy-source-if-match"] = source.tag }
        return fields
    }

    private static func require(_ tag: String?) throws -> String {
        guard let tag else { throw FileProviderError(.malformedResponse, "the server gives a copy no ETag") }
        return tag
    }

    private func copyInParts(_ original: S3Object, to key: String, _ isConditional: Bool) async throws -> String {
        let record = try await multipart.begin(
            key, size: original.size, partSize: max(min(largestCopy, 1 << 30), original.size / 9_000 + 1),
            try await client.metadata(of: original.key), date: 0)
        do {
            let fields = fields([:], source: original, isConditional)
            let parts = try await multipart.makeParts(of: record) { [client] number, range in
                var fields = fields
                fields["x-amz-copy-source-range"] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
                return try Self.require(
                    await client.sendLong { [fields] in
                        client.request(
                            "PUT", record.key,
                            query: [("partNumber", String(number)), ("uploadId", record.identifier)], fields: fields)
                    })
            }
            return try await multipart.complete(record, parts)
        } catch {
            await multipart.abort(record)
            throw error
        }
    }
}
