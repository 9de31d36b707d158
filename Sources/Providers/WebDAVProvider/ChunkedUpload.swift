import Crypto
import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization
import SystemPackage

/// Where a Nextcloud or an ownCloud takes large files in chunks, as the address of the collection says: beside
/// `…/dav/files/USER/` there is `…/dav/uploads/USER/`.
struct UploadPlace: Hashable, Sendable {
    /// The collection of all uploads of the user; ends in a slash.
    var collection: HTTPURL

    /// - Returns: nil for an address that does not say who the user is.
    init?(of base: HTTPURL) {
        let parts = base.path.split(separator: "/", omittingEmptySubsequences: true)
        guard
            let files = parts.indices.first(where: { index in
                parts[index] == "files" && index > 0 && parts[index - 1] == "dav" && index + 1 < parts.count
            })
        else { return nil }
        collection = base
        collection.path = "/" + (parts[..<files] + ["uploads", parts[files + 1]]).joined(separator: "/") + "/"
    }

    func folder(_ name: String) -> HTTPURL { url(name + "/") }
    func chunk(_ number: Int, of name: String) -> HTTPURL { url(name + "/" + Self.name(of: number)) }
    /// What is moved to where the file is to be.
    func whole(_ name: String) -> HTTPURL { url(name + "/.file") }

    private func url(_ path: String) -> HTTPURL {
        var url = collection
        url.path += path
        return url
    }

    /// In the order of their names they are put together.
    private static func name(of number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 5 - digits.utf8.count)) + digits
    }
}

/// Sends large files in chunks, so that one that was broken off goes on with the chunk at which it was.
///
/// As Nextcloud documents its chunked upload, version 2: a folder of its own for each upload, in it chunks that are called by
/// numbers, and a move of what they make together.
final class ChunkedUploads: Sendable {
    private let journal: ChunkJournal
    private let state = Mutex((isRefused: false, isTidy: false, underWay: Set<String>()))

    /// What is smaller goes in one piece.
    static let smallest: Int64 = 20 << 20
    private static let chunk: Int64 = 10 << 20
    private static let mostChunks: Int64 = 10_000
    /// Servers forget an upload that nobody comes back for within a day.
    private static let lifetime: Int64 = 86_400

    init(_ journal: ChunkJournal) {
        self.journal = journal
    }

    /// Whether the server was found to take none.
    var isRefused: Bool { state.withLock { $0.isRefused } }

    /// How large the chunks of a file are.
    static func chunkSize(for size: Int64) -> Int64 {
        let least = (size + mostChunks - 1) / mostChunks
        return max(chunk, (least + (1 << 20) - 1) / (1 << 20) * (1 << 20))
    }

    /// What one upload is.
    struct Job: Sendable {
        var place: UploadPlace
        /// Where the file is to be.
        var target: HTTPURL
        var name: String
        /// Of the move.
        var fields: HTTPFields
    }

    /// Sends a content, and moves it to its place.
    ///
    /// - Parameter isWanted: asked just before the move; throws what keeps the file from being written.
    /// - Returns: the answer to the move; nil where the server takes no chunks, and nothing was done.
    /// - Throws: what ``ContentSource`` throws; what keeps chunks from being sent.
    func send(
        _ contents: ContentSource, _ job: Job, by client: WebDAVClient, isWanted: () async throws -> Void
    ) async throws -> HTTPResponse? {
        let target = job.target.path
        guard !isRefused, state.withLock({ $0.underWay.insert(target).inserted }) else { return nil }
        defer { state.withLock { _ = $0.underWay.remove(target) } }
        await tidy(job.place, by: client)
        guard let (begun, present) = try await begin(contents.size, job, by: client) else { return nil }
        var record = begun

        let count = Int(max(0, contents.size - 1) / record.chunkSize + 1)
        for number in 1...count {
            let offset = Int64(number - 1) * record.chunkSize
            let range = offset..<(offset + min(record.chunkSize, contents.size - offset))
            let digest = try await BlockingWork.run { try Self.digest(of: contents, range) }
            if record.digests[number] == digest, present[number] == Int64(range.count) {
                contents.advance(by: Int64(range.count))
                continue
            }
            // What is there by that name is not this content from now on.
            if record.digests.removeValue(forKey: number) != nil { try journal.save(record) }
            let response = try await client.send(
                "PUT", job.place.chunk(number, of: record.folder), job.fieldsOfParts(contents.size),
                body: .content(contents, range))
            guard response.head.isSuccess else {
                guard [404, 409].contains(response.status) else {
                    throw WebDAVClient.failure(response, of: job.name, isChange: true)
                }
                // Of the folder that has gone, and not of the one in which the file is to be.
                journal.remove(record)
                throw FileProviderError(
                    .providerDomainTemporarilyUnavailable,
                    "\(client.base.host) has forgotten what it had of '\(job.name)': it is sent anew")
            }
            // What went is what was read before only if nobody has written since.
            try contents.confirm()
            record.digests[number] = digest
            try journal.save(record)
        }
        try contents.confirm()
        try await isWanted()
        var fields = job.fields
        fields["Destination"] = job.target.description
        fields["OC-Total-Length"] = String(contents.size)
        let response = try await client.send("MOVE", job.place.whole(record.folder), fields, isLong: true)
        if response.head.isSuccess {
            journal.remove(record)
        } else if [400, 404, 409, 412].contains(response.status) {
            // It is not what it should be, or not wanted: the next time it begins anew.
            await giveUp(record, in: job.place, by: client)
        }
        return response
    }

    private static func digest(of contents: ContentSource, _ range: Range<Int64>) throws -> String {
        var hash = SHA256()
        var offset = range.lowerBound
        while offset < range.upperBound {
            let count = Int(min(1 << 20, range.upperBound - offset))
            let bytes = try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                filled = try contents.descriptor.read(fromAbsoluteOffset: offset, into: .init(buffer))
            }
            guard !bytes.isEmpty else { throw FileProviderError.posix(.ioError, "the content ends early") }
            hash.update(data: bytes)
            offset += Int64(bytes.count)
        }
        return hash.finalize().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// The folder of an upload, and what is in it by now.
    private func begin(
        _ size: Int64, _ job: Job, by client: WebDAVClient
    ) async throws -> (record: ChunkRecord, present: [Int: Int64])? {
        let target = job.target.path
        let chunkSize = Self.chunkSize(for: size)
        if let known = journal.record(for: target) {
            if known.size == size, known.chunkSize == chunkSize,
                let present = try await chunks(of: known, in: job.place, by: client)
            {
                return (known, present)
            }
            await giveUp(known, in: job.place, by: client)
        }
        let record = ChunkRecord(
            folder: "yonder-" + String(UInt64.random(in: .min ... .max), radix: 16), target: target, size: size,
            chunkSize: chunkSize, begun: ChunkJournal.now)
        let response = try await client.send(
            "MKCOL", job.place.folder(record.folder), ["Destination": job.target.description])
        if response.head.isSuccess {
            try journal.save(record)
            return (record, [:])
        }
        // No such address, or not for everybody: files go in one piece as ever.
        guard [400, 403, 404, 405, 409, 501].contains(response.status) else {
            throw WebDAVClient.failure(response, of: job.name, isChange: true)
        }
        state.withLock { $0.isRefused = true }
        return nil
    }

    /// The lengths of the chunks that the server has; nil when it has forgotten the upload.
    private func chunks(
        of record: ChunkRecord, in place: UploadPlace, by client: WebDAVClient
    ) async throws -> [Int: Int64]? {
        let found = Mutex<[Int: Int64]>([:])
        do {
            _ = try await client.properties(
                place.folder(record.folder), depth: 1,
                body: DAVResource.request(withIdentifiers: false, withQuota: false), what: record.folder
            ) { resource, _ in
                guard let name = resource.href.split(separator: "/").last, let number = Int(name),
                    let length = resource.length, !resource.isCollection
                else { return }
                found.withLock { $0[number] = length }
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return nil
        }
        return found.withLock { $0 }
    }

    private func giveUp(_ record: ChunkRecord, in place: UploadPlace, by client: WebDAVClient) async {
        // Whoever gave up waiting still wants it gone.
        let isGone = await Task {
            let response = try? await client.send("DELETE", place.folder(record.folder), isLong: true)
            return response.map { $0.head.isSuccess || $0.status == 404 } ?? false
        }.value
        if isGone || ChunkJournal.now - record.begun > Self.lifetime { journal.remove(record) }
    }

    /// Deletes what nobody has come back for, once after each start.
    private func tidy(_ place: UploadPlace, by client: WebDAVClient) async {
        let isFirst = state.withLock { state in
            defer { state.isTidy = true }
            return !state.isTidy
        }
        guard isFirst else { return }
        for record in journal.records where ChunkJournal.now - record.begun > Self.lifetime {
            await giveUp(record, in: place, by: client)
        }
    }
}

extension ChunkedUploads.Job {
    fileprivate func fieldsOfParts(_ size: Int64) -> HTTPFields {
        [
            "Destination": target.description, "OC-Total-Length": String(size),
            "Content-Type": "application/octet-stream",
        ]
    }
}
