import FileNames
import FileProvider
import FileProviderPaths
import HTTPTransport

/// Writes the content and the metadata of objects. A PUT is visible as a whole or not at all, and so is a multipart upload.
struct ObjectWriter: Sendable {
    let tree: S3Tree
    let preconditions: Preconditions
    let copier: ObjectCopier
    let settings: S3Settings

    private var client: S3Client { tree.client }
    private var records: ObjectRecords { tree.records }

    // MARK: - Content

    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        let key = tree.key(of: path)
        let support = condition == .always ? nil : await preconditions.support()
        let (attributes, headers) = try await keeping(attributes, ofReplaced: condition, at: key)
        // The content is hashed before the condition is checked, so that nothing lies between the check and the request.
        let hashes =
            contents.size > settings.multipartThreshold ? nil : try await hashes(of: contents, 0..<contents.size)
        if condition == .absent { try await tree.requireDirectory(path.parent) }
        if support?.honours(condition) != true {
            try await tree.require(condition, at: path)
        } else if condition == .absent {
            // No precondition says that nothing lies below a name.
            try await tree.requireNothing(at: path)
        }
        let fields = ObjectMetadata.fields(attributes, headers: headers)
        do {
            let answer: Answer =
                if let hashes {
                    try await put(contents, hashes, to: key, fields, if: condition, support, at: path, attributes)
                } else {
                    try await upload(contents, to: key, fields, if: condition, support, at: path, attributes)
                }
            return try await written(contents, key, path, answer, if: condition, attributes, headers)
        } catch let failure as S3Failure where failure.isUnmetCondition || failure.isRace || failure.status == 404 {
            throw try await refusal(failure, condition, at: path)
        }
    }

    /// Gives the attributes of a write that sets no mode the mode of the object that it replaces, and tells the headers that are kept.
    /// Listings lack both for objects that were not read here: such an object is asked for them, unless its mode is set.
    private func keeping(
        _ attributes: RemoteAttributes, ofReplaced condition: RemoteCondition, at key: String
    ) async throws -> (attributes: RemoteAttributes, headers: [String: String]) {
        guard case .unchanged(let content) = condition else { return (attributes, [:]) }
        let replaced = S3Object(key: key, tag: records.tag(of: content, at: key), size: 0, modified: nil)
        if attributes.permissions != nil || records.hasMetadata(of: replaced) {
            return (attributes, records.headers(of: replaced))
        }
        var attributes = attributes
        var headers: [String: String] = [:]
        do {
            let fields = try await client.head(key).fields
            let present = ObjectMetadata.attributes(fields)
            headers = ObjectMetadata.headers(fields)
            // Of another version the write is refused.
            if let tag = fields["ETag"].map(S3Object.quoted),
                tag == records.requestedTag(of: key, listedAs: replaced.tag)
            {
                records.noteMetadata(present, headers: headers, of: replaced)
            }
            attributes.permissions = present.permissions
        } catch let failure as S3Failure where failure.status == 404 || failure.isAboutOneObject {
            // It is gone, which the write finds, or may be replaced and not looked at.
        }
        return (attributes, headers)
    }

    /// The error of a write that the server refuses because of its condition.
    private func refusal(
        _ failure: S3Failure, _ condition: RemoteCondition, at path: RemotePath
    ) async throws -> any Error {
        let present = try await tree.entry(at: path)
        let isMet = condition == .always || (present.map { condition.isOf($0.tag) } ?? (condition == .absent))
        guard isMet else { return RemoteConditionFailure(present: present) }
        return FileProviderError(
            .providerDomainTemporarilyUnavailable,
            "the server does not take the content (\(failure.serverMessage)), although nothing has changed there")
    }

    /// What the server says that it has stored.
    private struct Answer {
        var tag: String
        /// Whether it is the ETag of a PUT in the response, and not the one that the content should have.
        var isFromResponse: Bool
    }

    private func hashes(of contents: ContentSource, _ range: Range<Int64>) async throws -> ContentHashes {
        try await .of(contents, range, isSecure: client.location.endpoint?.isSecure ?? true)
    }

    /// Sends a change with its precondition, where the server honours that.
    private func sending(
        _ condition: RemoteCondition, _ support: ConditionSupport?, _ fields: HTTPFields, at path: RemotePath,
        _ body: (_ fields: HTTPFields, _ isChecked: Bool) async throws -> Void
    ) async throws {
        let content: [UInt8]? = if case .unchanged(let tag) = condition { tag } else { nil }
        try await preconditions.sending(
            condition, support, tag: content.map { records.tag(of: $0, at: tree.key(of: path)) },
            isUnchanged: { try await tree.has(content ?? [], at: path) },
            look: { try await tree.require(condition, at: path) }
        ) { extra in
            var all = fields
            for field in extra { all[field.name] = field.value }
            try await body(all, !extra.isEmpty)
        }
    }

    /// The check before a request is repeated whose condition the server does not check. What it sent itself may be there.
    private func recheck(
        _ condition: RemoteCondition, at path: RemotePath, sent tag: String
    ) -> @Sendable () async throws -> Void {
        { [tree] in
            do {
                try await tree.require(condition, at: path)
            } catch let failure as RemoteConditionFailure where failure.present?.tag == Array(tag.utf8) {
            }
        }
    }

    private func put(
        _ contents: ContentSource, _ hashes: ContentHashes, to key: String, _ fields: HTTPFields,
        if condition: RemoteCondition, _ support: ConditionSupport?, at path: RemotePath,
        _ attributes: RemoteAttributes
    ) async throws -> Answer {
        let expected = "\"\(hashes.md5.hexadecimal)\""
        records.willWrite(key, tag: expected, attributes)
        var fields = fields
        fields["Content-MD5"] = hashes.md5Base64
        var tag: String?
        try await sending(condition, support, fields, at: path) { fields, isChecked in
            let isCompared = condition != .always && !isChecked
            let comparesAgain = isCompared && contents.size > settings.largestUnwatched
            tag = try await client.send { [client, tree] in
                let body: HTTPBody
                if comparesAgain {
                    let pieces = LastLook(contents) { try await tree.require(condition, at: path) }
                    body = .pieces(count: contents.size) { try await pieces.next() }
                } else {
                    body = .content(contents)
                }
                return client.request(
                    "PUT", key, fields: fields, body: body, payloadHash: hashes.sha256,
                    repetition: isCompared ? .ifNotDone : nil,
                    recheck: isCompared ? recheck(condition, at: path, sent: expected) : nil)
            }.fields["ETag"]
        }
        return Answer(tag: tag.map(S3Object.quoted) ?? expected, isFromResponse: tag != nil)
    }

    /// Sends a large file in parts. Servers that list the ETags of a PUT may list others of what they assemble.
    private func upload(
        _ contents: ContentSource, to key: String, _ fields: HTTPFields, if condition: RemoteCondition,
        _ support: ConditionSupport?, at path: RemotePath, _ attributes: RemoteAttributes
    ) async throws -> Answer {
        let partSize = max(settings.partSize, (contents.size / 9_000 + 1).roundedUp(to: 1 << 20))
        let uploads = copier.multipart
        var (record, there) = try await uploads.resume(key, size: contents.size, partSize: partSize, fields)
        var attempt = 1
        while true {
            do {
                let parts = try await uploads.makeParts(of: record) { [record, there] number, range in
                    try await self.send(part: number, range, of: contents, record, there[number])
                }
                // The last byte may have been sent long ago.
                try await BlockingWork.run { try contents.confirm() }
                records.willWrite(key, tag: MultipartUploads.tag(of: parts), attributes)
                // Hours may have passed since the first comparison, and some servers check no preconditions here.
                try await tree.require(condition, at: path)
                var tag = ""
                try await sending(condition, support, [:], at: path) { [record] fields, _ in
                    tag = try await uploads.complete(
                        record, parts, fields,
                        recheck: recheck(condition, at: path, sent: MultipartUploads.tag(of: parts)))
                }
                return Answer(tag: tag, isFromResponse: false)
            } catch let failure as S3Failure where failure.code == "NoSuchUpload" && attempt == 1 {
                attempt += 1
                uploads.journal.remove(record)
                (record, there) = try await uploads.resume(key, size: contents.size, partSize: partSize, fields)
            } catch let failure as S3Failure where failure.isUnmetCondition || failure.isRace {
                // The next attempt is another upload, of another name or on another version.
                await uploads.abort(record)
                throw failure
            }
        }
    }

    /// Sends a part, unless the server has just this one.
    private func send(
        part number: Int, _ range: Range<Int64>, of contents: ContentSource, _ record: UploadRecord, _ there: String?
    ) async throws -> String {
        let hashes = try await hashes(of: contents, range)
        if let there, there.lowercased().contains(hashes.md5.hexadecimal) {
            contents.advance(by: Int64(range.count))
            return there
        }
        let answer = try await client.send { [client] in
            client.request(
                "PUT", record.key, query: [("partNumber", String(number)), ("uploadId", record.identifier)],
                fields: ["Content-MD5": hashes.md5Base64], body: .content(contents, range),
                payloadHash: hashes.sha256)
        }
        guard let tag = answer.fields["ETag"] else {
            throw FileProviderError(.malformedResponse, "the server gives a part no tag")
        }
        return tag
    }

    // MARK: - Symbolic links

    /// Makes the object that is a symbolic link, where nothing has the name.
    func makeLink(at path: RemotePath, to target: String, _ attributes: RemoteAttributes) async throws -> RemoteEntry {
        let support = await preconditions.support()
        try await tree.requireDirectory(path.parent)
        // No precondition says that there is no file of this name, and that nothing lies below it.
        try await tree.requireNothing(at: path)
        let (key, bytes) = (tree.key(of: path, .symbolicLink), FileNameText.bytes(of: target))
        if !support.honours(.absent) { try await requireNoObject(key, of: path) }
        let recheck: @Sendable () async throws -> Void = { [tree] in try await tree.requireNothing(at: path) }
        do {
            try await sending(.absent, support, ObjectMetadata.fields(attributes), at: path) { fields, isChecked in
                _ = try await client.send { [client] in
                    client.request(
                        "PUT", key, fields: fields, body: .bytes(bytes), repetition: .harmless,
                        recheck: isChecked ? nil : recheck)
                }
            }
        } catch let failure as S3Failure where failure.isUnmetCondition || failure.isRace {
            let error = try await refusal(failure, .absent, at: path)
            let present = (error as? RemoteConditionFailure)?.present
            if present == nil { try await requireNoObject(key, of: path) }
            guard Self.isLink(present, to: target) else { throw error }
        } catch let failure as RemoteConditionFailure where Self.isLink(failure.present, to: target) {
        }
        if attributes.contentModificationDate != nil, let made = try await client.listed(key) {
            records.noteMetadata(attributes, of: made)
        }
        guard let entry = try await tree.entry(at: path) else { throw S3Tree.missing(path) }
        return entry
    }

    /// The key of a link may be taken although nothing has the link's name: a listing may not show the object yet, and an object that
    /// is no link is shown as a file.
    private func requireNoObject(_ key: String, of path: RemotePath) async throws {
        guard let object = try await client.object(key) else { return }
        let name = path.name ?? ""
        if case .link(let link) = try await tree.links.kind(of: object, name: name) {
            throw RemoteConditionFailure(present: link)
        }
        throw FileProviderError(.cannotSynchronize, "'\(name)\(LinkNames.suffix)' is in the way: it is no link")
    }

    /// Whether an entry is the link that an attempt without a response may have made.
    private static func isLink(_ entry: RemoteEntry?, to target: String) -> Bool {
        entry?.kind == .symbolicLink && entry?.attributes.symbolicLinkTarget?.utf8.elementsEqual(target.utf8) == true
    }

    // MARK: - Afterwards

    /// The entry of an object that has just been written, as listings show it.
    ///
    /// - Throws: ``RemoteConditionFailure`` when another client has written it since; `malformedResponse` when nothing was
    ///   written.
    private func written(
        _ contents: ContentSource, _ key: String, _ path: RemotePath, _ answer: Answer, if condition: RemoteCondition,
        _ attributes: RemoteAttributes, _ headers: [String: String]
    ) async throws -> RemoteEntry {
        tree.note(seen: tree.prefix(of: path.parent))
        let name = path.name ?? ""
        // Where responses and listings have been seen to agree, the response says all that a listing would say but the date,
        // and that is the file's.
        if answer.isFromResponse, attributes.contentModificationDate != nil,
            preconditions.known?.answersWithListedTags == true
        {
            let written = S3Object(key: key, tag: answer.tag, size: contents.size, modified: nil)
            records.didWrite(written, attributes, headers: headers)
            return records.file(written, name: name)
        }
        let found: S3Object?
        if let listed = try await client.listed(key) { found = listed } else { found = try await client.object(key) }
        guard let found else {
            throw FileProviderError(.malformedResponse, "what was written to the bucket is not there")
        }
        var isOwn = found.size == contents.size
        if isOwn, answer.tag != found.tag { isOwn = try await isSame(found, writtenAs: answer.tag, contents) }
        guard isOwn else {
            let there = records.file(found, name: name)
            guard condition.isOf(there.tag) else { throw RemoteConditionFailure(present: there) }
            throw FileProviderError(.malformedResponse, "the server has not stored what it has acknowledged")
        }
        records.didWrite(found, attributes, headers: headers, other: answer.tag)
        return records.file(found, name: name)
    }

    /// Whether an object is what was just written here, although a listing shows another ETag than the response to the PUT:
    /// servers that encrypt, and gateways, may respond with one ETag and list another.
    private func isSame(_ found: S3Object, writtenAs tag: String, _ contents: ContentSource) async throws -> Bool {
        guard let there = try await client.object(found.key), there.size == contents.size else { return false }
        if there.tag == tag {
            records.note(requested: tag, of: found.key, listedAs: found.tag)
            return true
        }
        // No later response shows the ETag of the PUT: the bytes decide.
        do {
            let isEqual = try await contents.equals {
                _ = try await client.read(found.key, there.tag, isConditional: false, into: $0)
            }
            guard isEqual else { return false }
        } catch let error where S3Failure.isAboutVersion(error) {
            return false
        }
        if there.tag != found.tag { records.note(requested: there.tag, of: found.key, listedAs: found.tag) }
        return true
    }

    // MARK: - Metadata

    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        let others: ItemFields = [.extendedAttributes, .creationDate]
        guard let present = try await tree.entry(at: path), present.kind == kind else { throw S3Tree.missing(path) }
        // A multipart object would get another ETag, and so be another content for all other clients. Where the server does not
        // compare the source's ETag, the copy may be of what another client has just written.
        guard kind == .file, attributes.contentModificationDate != nil || attributes.permissions != nil,
            await preconditions.support().comparesSources, (present.size ?? 0) <= settings.largestCopy,
            let object = try await client.listed(tree.key(of: path)), !object.tag.contains("-"),
            records.known(object).utf8.elementsEqual(present.tag)
        else { return (present, others.union([.contentModificationDate, .permissions])) }
        var attributes = attributes
        var metadata = try await client.metadata(of: object.key)
        // What is changed here is no rename's copy any more, also if its content is the same.
        metadata[ObjectMetadata.rename] = nil
        // The copy has another date in listings.
        if metadata["x-amz-meta-mtime"] == nil, attributes.contentModificationDate == nil {
            attributes.contentModificationDate = records.date(of: object)
        }
        for field in ObjectMetadata.fields(attributes) { metadata[field.name] = field.value }
        let tag = try await copier.copy(object, replacing: metadata)
        records.didCopy([(object, object.key, tag)])
        records.noteMetadata(
            ObjectMetadata.attributes(metadata), headers: ObjectMetadata.headers(metadata),
            of: S3Object(key: object.key, tag: tag, size: object.size, modified: nil))
        return (try await tree.entry(at: path) ?? present, others)
    }
}

extension Int64 {
    fileprivate func roundedUp(to unit: Int64) -> Int64 { (self + unit - 1) / unit * unit }
}
