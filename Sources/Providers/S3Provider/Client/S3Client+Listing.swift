import FileProvider
import FileProviderPaths
import HTTPTransport

extension S3Client {
    /// Lists keys that begin with a prefix.
    ///
    /// - Parameters:
    ///   - isFlat: lists every key; otherwise all keys up to a further slash are one entry.
    ///   - isRaw: does not correct a listing that is older than acknowledged requests.
    /// - Throws: ``S3Failure``; `malformedResponse` when the listing ends early, or does not end.
    func list(
        prefix: String, isFlat: Bool, from token: String? = nil, limit: Int = 1000, isRaw: Bool = false
    ) async throws -> S3Listing {
        try await again { (_: Int) async throws -> S3Listing in
            var query = [
                ("list-type", "2"), ("prefix", prefix), ("encoding-type", "url"),
                ("max-keys", String(max(1, min(limit, 1000)))),
            ]
            if !isFlat { query.append(("delimiter", "/")) }
            if let token { query.append(("continuation-token", token)) }
            let parser = ListingParser(host: self.location.endpoint?.host ?? "S3")
            let bucket = self.location.bucket
            let request = self.request("GET", nil, query: query)
            let (start, tick) = (ContinuousClock.now, self.ledger.now)
            _ = try await self.transport.sendForXML(
                request, limits: Self.limitsOfPart,
                isWanted: { head in
                    self.noteServer(head)
                    return head.status == 200
                }, take: { try parser.take($0) }, discard: parser.discard,
                failure: { S3Failure($0, bucket: bucket) })
            self.ledger.noteResponse(after: .now - start)
            let listing = try parser.finish(after: token)
            guard listing.entries.allSatisfy({ $0.key.utf8.starts(with: prefix.utf8) }) else {
                throw FileProviderError(.malformedResponse, "the listing of '\(prefix)' has keys of other places")
            }
            if isRaw { return listing }
            return try await self.current(
                listing, prefix: prefix, isFlat: isFlat, isFirst: token == nil, requestedAt: tick)
        }
    }

    /// A part of a listing is in memory as a whole. It has at most a thousand keys of a kilobyte.
    private static let limitsOfPart = {
        var limits = XMLLimits()
        limits.total = 32 << 20
        return limits
    }()

    /// The current object, without its date; nil when there is none.
    ///
    /// - Throws: `malformedResponse` also for an object of which nothing tells the ETag or the size: it is there.
    func object(_ key: String) async throws -> S3Object? {
        guard let head = try await ifExists({ try await self.head(key) }) else { return nil }
        if let object = S3Object(key: key, head: head) { return object }
        // A proxy that compresses may drop the length and the ETag.
        let listing = try await list(prefix: key, isFlat: true, limit: 1, isRaw: true)
        guard case .object(var object)? = listing.entries.first, object.key.utf8.elementsEqual(key.utf8) else {
            throw FileProviderError(.malformedResponse, "\(head.url.host) does not say which object '\(key)' is")
        }
        object.modified = nil
        return object
    }

    /// An object as a listing has it; nil when there is none. Other responses round its date in other ways.
    func listed(_ key: String) async throws -> S3Object? {
        let listing = try await list(prefix: key, isFlat: true, limit: 1)
        guard case .object(let first)? = listing.entries.first, first.key.utf8.elementsEqual(key.utf8) else {
            return nil
        }
        return first
    }

    /// Writes an object's content, or a range of it, into a sink.
    ///
    /// - Parameters:
    ///   - tag: the object's ETag; nil for any.
    ///   - isConditional: whether the server is to refuse another object. The ETag in the response is compared in any case.
    /// - Returns: the object, and the fields of the response, with its metadata.
    func read(
        _ key: String, _ tag: String?, _ range: Range<Int64>? = nil, isConditional: Bool, into sink: any ContentSink
    ) async throws -> (S3Object, HTTPFields) {
        let bucket = location.bucket
        return try await again { (_: Int) async throws -> (S3Object, HTTPFields) in
            var request = request("GET", key)
            if isConditional { request.fields["If-Match"] = tag }
            var download = HTTPDownload(request, range: range) { [self] answer in
                noteServer(answer.head)
                return S3Failure(answer, bucket: bucket)
            }
            download.keepsCoding = true
            download.check = { [self] head in
                noteServer(head)
                guard let given = head.fields["ETag"] else {
                    throw FileProviderError(.malformedResponse, "\(head.url.host) gives content without its tag")
                }
                guard let tag else { return }
                guard S3Object.quoted(given) == tag else {
                    throw FileProviderError(.versionNoLongerAvailable, "'\(key)' has changed")
                }
                sink.confirmVersion()
            }
            let head = try await transport.download(download, into: sink)
            var found = S3Object(key: key, head: head)
            // A part may come without the length of the whole.
            if found == nil { found = try await self.object(key) }
            guard let found, head.fields["ETag"].map(S3Object.quoted) == found.tag else {
                throw FileProviderError(.versionNoLongerAvailable, "'\(key)' has changed")
            }
            return (found, head.fields)
        }
    }

    /// Waits until no request without a response may still be applied to some keys.
    func settleDoubts(over extents: [PathExtent]) async throws {
        try await ledger.settle(over: extents) {
            _ = try await list(prefix: location.prefix, isFlat: true, limit: 1)
        }
    }
}
