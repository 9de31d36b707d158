import FileProvider
import HTTPTransport

struct ObjectCopier: Sendable {
    let client: S3Client
    let preconditions: Preconditions
    let multipart: MultipartUploads
    /// The size, in bytes, up to which the server copies an object with one request.
    let largestCopy: Int64

    /// There is an object at the key of a copy, which must not be replaced.
    struct Occupied: Error {}

    /// Where a copy goes to.
    private enum Target {
        case itself
        case free
    }

    /// Copies an object onto itself, on a server that was seen to compare the ETags of sources. So each attempt, also a repeated
    /// one, copies only the listed content.
    ///
    /// - Parameter metadata: replaces the object's, where it says so.
    /// - Returns: the copy's ETag.
    func copy(_ original: S3Object, replacing metadata: HTTPFields) async throws -> String {
        try await copy(original, to: original.key, .itself, metadata, isConditional: true)
    }

    /// Copies an object as it was listed, with its metadata, to a key that no object has.
    ///
    /// - Parameter mark: tells in the copy's metadata what it was made for. Where the server has no room for it, the copy has none.
    /// - Returns: the copy's ETag. Where it is not the original's, the original may have changed before: some servers compare
    ///   multipart objects with other ETags than they list, so that no precondition is possible.
    /// - Throws: ``Occupied``, also after a copy whose response was lost.
    func copy(_ original: S3Object, toFree key: String, marked mark: String?) async throws -> String {
        var metadata = try await client.metadata(of: original.key)
        metadata[ObjectMetadata.rename] = mark
        do {
            do {
                return try await copy(original, toFree: key, metadata)
            } catch let failure as S3Failure where failure.code == "MetadataTooLarge" && mark != nil {
                metadata[ObjectMetadata.rename] = nil
                return try await copy(original, toFree: key, metadata)
            }
        } catch let failure as S3Failure where failure.isUnmetCondition || failure.isRace {
            // It may be the condition on the original, or that on the copy.
            if try await client.object(key) != nil { throw Occupied() }
            throw failure
        }
    }

    private func requireFree(_ key: String) async throws {
        if try await client.object(key) != nil { throw Occupied() }
    }

    private func copy(_ original: S3Object, toFree key: String, _ metadata: HTTPFields) async throws -> String {
        if client.listsOtherTags { return try await copy(original, to: key, .free, metadata, isConditional: false) }
        do {
            return try await copy(original, to: key, .free, metadata, isConditional: true)
        } catch let failure as S3Failure where failure.isUnmetCondition {
            guard try await client.listed(original.key)?.tag == original.tag else { throw failure }
            return try await copy(original, to: key, .free, metadata, isConditional: false)
        }
    }

    private func copy(
        _ original: S3Object, to key: String, _ target: Target, _ metadata: HTTPFields, isConditional: Bool
    ) async throws -> String {
        if original.size > largestCopy { return try await copyInParts(original, to: key, metadata, isConditional) }
        var fields = fields(metadata, source: original, isConditional)
        var recheck: (@Sendable () async throws -> Void)?
        if target == .free {
            // As of any new object.
            fields["x-amz-storage-class"] = nil
            if preconditions.known?.onCopying == true {
                fields["If-None-Match"] = "*"
            } else {
                recheck = { try await requireFree(key) }
                try await requireFree(key)
            }
        }
        return try Self.require(
            await client.sendForResult(copying: original.size) { [fields] in
                client.request("PUT", key, fields: fields, repetition: .harmless, recheck: recheck)
            })
    }

    private func fields(_ fields: HTTPFields, source: S3Object, _ isConditional: Bool) -> HTTPFields {
        var fields = fields
        if !fields.isEmpty { fields["x-amz-metadata-directive"] = "REPLACE" }
        fields["x-amz-copy-source"] = client.copySource(source.key)
        if isConditional { fields["x-amz-copy-source-if-match"] = source.tag }
        return fields
    }

    private static func require(_ tag: String?) throws -> String {
        guard let tag else { throw FileProviderError(.malformedResponse, "the server gives a copy no ETag") }
        return tag
    }

    private func copyInParts(
        _ original: S3Object, to key: String, _ metadata: HTTPFields, _ isConditional: Bool
    ) async throws -> String {
        let record = try await multipart.begin(
            key, size: original.size, partSize: max(min(largestCopy, 1 << 30), original.size / 9_000 + 1),
            metadata, date: 0)
        do {
            let fields = fields([:], source: original, isConditional)
            let parts = try await multipart.makeParts(of: record) { [client] number, range in
                var fields = fields
                fields["x-amz-copy-source-range"] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
                return try Self.require(
                    await client.sendForResult { [fields] in
                        client.request(
                            "PUT", record.key,
                            query: [("partNumber", String(number)), ("uploadId", record.identifier)], fields: fields)
                    })
            }
            // Copying the parts may have taken long. Some servers check no preconditions here.
            try await requireFree(key)
            return try await multipart.complete(
                record, parts, preconditions.known?.onCreating == true ? ["If-None-Match": "*"] : [:],
                recheck: { try await requireFree(key) })
        } catch {
            await multipart.abort(record)
            throw error
        }
    }
}
