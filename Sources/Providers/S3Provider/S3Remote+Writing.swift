import Crypto
import FileProvider
import Foundation
import HTTPTransport
import PathAddressing
import Synchronization

/// Making and replacing objects. A PUT is seen whole or not at all, and so is an upload in parts.
extension S3Remote {
    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        try await ready()
        if condition == .absent { try check(path) }
        return try await changingOne(path, isTree: false) { [self] in
            let key = key(of: path)
            let support = condition == .always ? nil : await conditions()
            let isLarge = contents.size > settings.multipartThreshold
            // So that nothing lies between the look and the request.
            let hashes = isLarge ? nil : try await hashes(of: contents, 0..<contents.size)
            if condition == .absent {
                try await requireDirectory(path.parent)
                // No condition says that nothing lies below a name.
                if let there = try await present(at: path) { throw RemoteConditionFailure(present: there) }
            } else if support?.honours(condition) != true {
                try await require(condition, at: path)
            }
            let fields = ObjectMetadata.fields(attributes)
            var tag: String?
            do {
                let note: (String) -> Void = { [sent] tag in
                    sent.note(
                        Self.lastName(of: key), .tag(Array(tag.utf8)), date: attributes.contentModificationDate)
                }
                if let hashes {
                    tag = try await put(contents, hashes, to: key, fields, if: condition, at: path, willHaveTag: note)
                } else {
                    try await upload(contents, to: key, fields, if: condition, at: path, willHaveTag: note)
                }
            } catch let failure as S3Failure where failure.isUnmetCondition || failure.isRace {
                throw RemoteConditionFailure(present: try await present(at: path))
            } catch let failure as S3Failure where failure.status == 404 && condition != .always {
                guard let there = try await present(at: path) else { throw RemoteConditionFailure(present: nil) }
                throw RemoteConditionFailure(present: there)
            }
            return try await written(contents, key, path, tag: tag, date: attributes.contentModificationDate)
        }
    }

    /// What has just been written, as listings show it.
    ///
    /// - Parameter tag: what the server said that it is; nil where it said nothing.
    /// - Throws: ``RemoteConditionFailure`` when somebody else has written it since.
    private func written(
        _ contents: ContentSource, _ key: String, _ path: RemotePath, tag: String?, date: FileTimestamp?
    ) async throws -> RemoteEntry {
        note(seen: prefix(of: path.parent))
        // Where answers and listings have been seen to agree, the answer says all that a listing would say but the date,
        // and that is the file's.
        if let tag, let date, state.withLock({ $0.conditions?.answersWithListedTags }) == true {
            let written = S3Object(key: key, tag: tag, size: contents.size, modified: nil)
            dates.note([(key, written.tag, date)])
            copies.remove([key])
            sent.forget(Self.lastName(of: key), tag: Array(written.tag.utf8))
            return file(written, name: path.name ?? "")
        }
        let found: S3Object?
        if let listed = try await listed(key) { found = listed } else { found = try await object(key) }
        guard let found else {
            throw FileProviderError(.malformedResponse, "what was written to the bucket is not there")
        }
        let tag = tag.map(S3Object.quoted)
        var isOwn = found.size == contents.size
        if isOwn, let tag, tag != found.tag { isOwn = try await isSame(found, path, writtenAs: tag, contents) }
        guard isOwn else { throw RemoteConditionFailure(present: file(found, name: path.name ?? "")) }
        if let date { dates.note([(key, found.tag, date)]) }
        copies.remove([key])
        for known in [tag, found.tag] {
            if let known { sent.forget(Self.lastName(of: key), tag: Array(known.utf8)) }
        }
        return file(found, name: path.name ?? "")
    }

    /// Whether an object is what was just written here, though a listing shows another ETag than the answer to the PUT:
    /// servers that encrypt, and gateways, may answer with one ETag and list another.
    private func isSame(
        _ found: S3Object, _ path: RemotePath, writtenAs tag: String, _ contents: ContentSource
    ) async throws -> Bool {
        guard let there = try await object(found.key), there.size == contents.size else { return false }
        if there.tag == tag {
            note(asked: tag, of: found.key, listedAs: found.tag)
            return true
        }
        // No later answer shows the ETag of the PUT: the bytes decide.
        let sink = ComparingSink(source: contents)
        do {
            _ = try await read(path, there.tag, listedAs: nil, nil, into: sink, isConditional: false)
        } catch is ComparingSink.Difference {
            // The content may have been written here meanwhile.
            try contents.confirm()
            return false
        } catch let error where Self.isAboutVersion(error) {
            return false
        }
        try contents.confirm()
        guard sink.count == contents.size else { return false }
        if there.tag != found.tag { note(asked: there.tag, of: found.key, listedAs: found.tag) }
        return true
    }

    private func put(
        _ contents: ContentSource, _ hashes: Hashes, to key: String, _ fields: HTTPFields,
        if condition: RemoteCondition, at path: RemotePath, willHaveTag: (String) -> Void
    ) async throws -> String? {
        willHaveTag("\"\(Signature.hexadecimal(hashes.md5))\"")
        var fields = fields
        fields["Content-MD5"] = hashes.md5Base64
        var tag: String?
        try await conditional(condition, at: key, of: path) { extra in
            var fields = fields
            for (name, value) in extra { fields[name] = value }
            let all = fields
            let isLooked = condition != .always && extra.isEmpty
            let looksAgain = isLooked && contents.size > settings.largestUnwatched
            tag = try await client.send { [client] in
                let body: HTTPBody
                if looksAgain {
                    let pieces = LastLook(contents) { try await self.require(condition, at: path) }
                    body = .pieces(count: contents.size) { try await pieces.next() }
                } else {
                    body = .content(contents)
                }
                // What a condition was looked at for is not sent again without another look.
                return client.request(
                    "PUT", key, fields: all, body: body, payloadHash: hashes.sha256,
                    repetition: isLooked ? .ifNotDone : nil)
            }.fields["ETag"]
        }
        return tag
    }

    /// Looks whether a condition holds.
    func require(_ condition: RemoteCondition, at path: RemotePath) async throws {
        switch condition {
        case .always, .empty: return
        case .absent:
            if let there = try await present(at: path) { throw RemoteConditionFailure(present: there) }
        case .unchanged(let tag):
            let there = try await present(at: path)
            guard let there, there.tag == tag else { throw RemoteConditionFailure(present: there) }
        }
    }

    // MARK: - Directories

    func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        try await ready()
        try check(path)
        return try await changingOne(path, isTree: true) { [self] in
            try await requireDirectory(path.parent)
            if let there = try await present(at: path) { throw RemoteConditionFailure(present: there) }
            try await mark(prefix(of: path))
            return RemoteEntry(name: path.name ?? "", kind: .directory, tag: [], isTagStrong: false)
        }
    }

    /// Makes the object that keeps a directory.
    func mark(_ prefix: String) async throws {
        _ = try await client.send { [client] in
            client.request(
                "PUT", prefix, fields: ["Content-Type": "application/x-directory"], body: .bytes([]))
        }
        note(marked: prefix)
        note(seen: prefix)
    }

    /// - Throws: `noSuchItem` when no key lies in the directory.
    func requireDirectory(_ path: RemotePath) async throws {
        guard !path.names.isEmpty else { return }
        let prefix = prefix(of: path)
        let now = S3Client.now
        // So short a time changes nothing: it may go in the next moment as well.
        if state.withLock({ ($0.seen[KeyBytes(prefix)] ?? 0) > now - 5 }) { return }
        guard try await isDirectory(path) else { throw Self.missing(path) }
        note(seen: prefix)
    }

    func note(seen prefix: String) {
        state.withLock { state in
            if state.seen.count > 1000 { state.seen.removeAll() }
            state.seen[KeyBytes(prefix)] = S3Client.now
        }
    }

    func forget(_ prefix: String) {
        state.withLock { state in
            state.seen = state.seen.filter { !$0.key.starts(with: prefix) }
            state.marked = state.marked.filter { !$0.starts(with: prefix) }
        }
    }

    /// Before something goes from a directory: makes what keeps the directory, when nothing else does. What others are just
    /// taking from it keeps nothing.
    func keepDirectory(_ path: RemotePath) async throws {
        guard !path.names.isEmpty else { return }
        let prefix = prefix(of: path)
        if state.withLock({ $0.marked.contains(KeyBytes(prefix)) }) { return }
        let going = client.ledger.emptied
        let listing = try await client.list(prefix: prefix, isFlat: false, limit: going.count + 1)
        // One that is not there any more is not made again.
        let isKept =
            listing.next != nil || listing.entries.isEmpty
            || listing.entries.contains { entry in !going.contains { $0.contains(Array(entry.key.utf8)) } }
        if !isKept { try await mark(prefix) }
    }

    // MARK: - What is written beside the content

    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        try await ready()
        let others: ItemFields = [.permissions, .extendedAttributes, .creationDate]
        return try await changingOne(path, isTree: false) { [self] in
            guard let present = try await present(at: path), present.kind == kind else { throw Self.missing(path) }
            // What was sent in parts would get another tag, and so be another content for everybody else.
            guard kind == .file, let date = attributes.contentModificationDate,
                (present.size ?? 0) <= settings.largestCopy, let object = try await listed(key(of: path)),
                !object.tag.contains("-"), copies.known(object).utf8.elementsEqual(present.tag)
            else { return (present, others.union(.contentModificationDate)) }
            let known = copies.known(object)
            let tag = try await rewriteMetadata(of: object, attributes)
            dates.note([(object.key, tag, date)])
            copies.note([(object.key, tag, known)])
            return (try await self.present(at: path) ?? present, others)
        }
    }

    /// Has the server copy an object onto itself, with other things written beside it.
    private func rewriteMetadata(of object: S3Object, _ attributes: RemoteAttributes) async throws -> String {
        let head = try await client.send { [client] in client.request("HEAD", object.key) }.head
        var fields: HTTPFields = ["x-amz-metadata-directive": "REPLACE"]
        for field in head.fields {
            let name = field.name.lowercased()
            if name.hasPrefix("x-amz-meta-") || ["content-type", "cache-control", "content-disposition"].contains(name)
            {
                fields[name] = field.value
            }
        }
        for field in ObjectMetadata.fields(attributes) { fields[field.name] = field.value }
        return try await copy(object, to: object.key, fields)
    }

    /// - Throws: `cannotSynchronize` for a name that would come back as another.
    func check(_ path: RemotePath) throws {
        guard let name = path.name else { return }
        if !KeyNames.canBeMade(name) {
            throw FileProviderError(
                .cannotSynchronize, "names with '\(KeyNames.mark)' in them stand for special keys in a bucket")
        }
        if LinkNames.isOne(name) {
            throw FileProviderError(
                .cannotSynchronize, "names that end with '\(LinkNames.suffix)' are links in a bucket")
        }
        guard key(of: path).utf8.count <= 1024 - LinkNames.suffix.utf8.count else {
            throw FileProviderError(.cannotSynchronize, "the path is too long for a bucket: 1,024 bytes are the most")
        }
    }

    // MARK: - Hashes

    /// What proves that what arrives is what was sent.
    struct Hashes: Sendable {
        var md5: [UInt8]
        /// Hexadecimal digits; ``Signature/unsignedPayload`` where TLS sees to it.
        var sha256: String
        var md5Base64: String { Data(md5).base64EncodedString() }
    }

    /// Reads a range once. What changes before it is read again does not fit these hashes, and the server refuses it.
    func hashes(of contents: ContentSource, _ range: Range<Int64>) async throws -> Hashes {
        let isSecure = client.location.endpoint?.isSecure ?? true
        return try await BlockingWork.run {
            // A source of its own: what is only looked at is no progress.
            let quiet = ContentSource(descriptor: contents.descriptor, size: contents.size)
            var md5 = Insecure.MD5()
            var sha256 = SHA256()
            var position = range.lowerBound
            while position < range.upperBound {
                let count = min(Int64(1 << 20), range.upperBound - position)
                let bytes = try quiet.read(at: position, count: Int(count))
                md5.update(data: bytes)
                if !isSecure { sha256.update(data: bytes) }
                position += count
            }
            return Hashes(
                md5: Array(md5.finalize()),
                sha256: isSecure ? Signature.unsignedPayload : Signature.hexadecimal(sha256.finalize()))
        }
    }
}
