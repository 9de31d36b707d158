import FileProvider
import FileProviderPaths
import Synchronization

/// What is known of objects beside what listings show: dates, modes, other ETags of the same content, and uploads without a response.
final class ObjectRecords: Sendable {
    /// A lost note costs one request, or one download.
    private struct Note: Codable, Equatable {
        /// The ETag of the object that the note is about.
        var tag: String
        /// The date in the object's metadata, in nanoseconds since 1970. A listing shows the date of the upload.
        var date: Int64?
        /// The mode in the object's metadata.
        var permissions: UInt16?
        /// The headers that new content keeps (``ObjectMetadata/headers(_:)``).
        var headers: [String: String]?
        /// Whether the object's metadata has not been seen: it is a copy of an object that was not read.
        var isUnseen: Bool?
        /// The ETag under which the same bytes were first known here. A server-side copy of a multipart or encrypted object gets
        /// a new ETag although its content is unchanged; without this a rename of a directory would invalidate every cached
        /// file below it.
        var known: String?
        /// ``MoveRecord/begun`` of the rename that made the object.
        var renaming: Int64?
        /// The target of the link that the object is, where it was read.
        var target: String?
    }

    let sent: SentContents
    private let notes: ObjectNotes<Note>
    private let ledger: OperationLedger
    /// The ETags that requests for objects have where listings have others.
    private let requested = Mutex<[KeyBytes: (listed: String, requested: String)]>([:])

    init(in store: ReportingStore, ledger: OperationLedger) {
        sent = SentContents(in: store)
        notes = ObjectNotes("s3.objects", in: store)
        self.ledger = ledger
    }

    func file(_ object: S3Object, name: String) -> RemoteEntry {
        ledger.noteSeen(object.key, tag: object.tag)
        return RemoteEntry(
            name: name, kind: .file, tag: Array(known(object).utf8), isTagStrong: true, size: object.size,
            attributes: RemoteAttributes(
                contentModificationDate: date(of: object), permissions: permissions(of: object)))
    }

    /// The date of an object's content: the recorded one, or that of content that was sent to its key without a response;
    /// else the listing's.
    func date(of object: S3Object) -> FileTimestamp? {
        note(of: object)?.date.map(FileTimestamp.init(nanosecondsSince1970:))
            ?? sent.date(object.key, tag: Array(object.tag.utf8)) ?? object.modified
    }

    /// The mode of an object: the recorded one, or that of content that was sent to its key without a response.
    private func permissions(of object: S3Object) -> UInt16? {
        note(of: object)?.permissions ?? sent.permissions(object.key, tag: Array(object.tag.utf8))
    }

    /// Whether it is known what an object's metadata has.
    func hasMetadata(of object: S3Object) -> Bool { note(of: object).map { $0.isUnseen != true } ?? false }

    /// The headers that new content of an object keeps, as far as its metadata was seen.
    func headers(of object: S3Object) -> [String: String] { note(of: object)?.headers ?? [:] }

    /// The ETag by which an object's content is known.
    func known(_ object: S3Object) -> String { note(of: object)?.known ?? object.tag }

    /// The ETag that the object at a key has while it has the content of an entry's tag.
    func tag(of content: [UInt8], at key: String) -> String {
        let known = String(decoding: content, as: UTF8.self)
        return notes[key].flatMap { $0.known == known ? $0.tag : nil } ?? known
    }

    /// The target of the link that an object is, where it was read.
    func target(of object: S3Object) -> String? { note(of: object)?.target }

    private func note(of object: S3Object) -> Note? { notes[object.key].flatMap { $0.tag == object.tag ? $0 : nil } }

    // MARK: - Changes

    /// Content with an ETag is about to be sent.
    func willWrite(_ key: String, tag: String, _ attributes: RemoteAttributes) {
        sent.note(
            key, .tag(Array(tag.utf8)), date: attributes.contentModificationDate, permissions: attributes.permissions)
    }

    /// - Parameter other: the ETag in the response to the upload, where listings have another.
    func didWrite(
        _ object: S3Object, _ attributes: RemoteAttributes, headers: [String: String], other: String? = nil
    ) {
        let note = Note(
            tag: object.tag, date: attributes.contentModificationDate?.nanosecondsSince1970,
            permissions: attributes.permissions, headers: headers.isEmpty ? nil : headers)
        // Also without attributes: it is known then that the object has none.
        notes.note([(object.key, note)])
        for tag in [object.tag, other ?? object.tag] { sent.forget(object.key, .tag(Array(tag.utf8))) }
    }

    func noteMetadata(_ attributes: RemoteAttributes, headers: [String: String] = [:], of object: S3Object) {
        var note = note(of: object) ?? Note(tag: object.tag)
        note.date = attributes.contentModificationDate?.nanosecondsSince1970 ?? note.date
        note.permissions = attributes.permissions ?? note.permissions
        note.headers = headers.isEmpty ? nil : headers
        note.isUnseen = nil
        if note != self.note(of: object) { notes.note([(object.key, note)]) }
    }

    func note(targets: [(object: S3Object, target: String)]) {
        notes.note(
            targets.map { object, target in
                var note = note(of: object) ?? Note(tag: object.tag)
                note.target = target
                return (object.key, note)
            })
    }

    /// Copies have the attributes and the known contents of their originals.
    ///
    /// - Parameter rename: the rename for which they were made.
    func didCopy(_ made: [(original: S3Object, key: String, tag: String)], in rename: MoveRecord? = nil) {
        notes.note(
            made.map { original, key, tag in
                let known = known(original)
                return (
                    key,
                    Note(
                        tag: tag, date: date(of: original)?.nanosecondsSince1970,
                        permissions: permissions(of: original), headers: note(of: original)?.headers,
                        isUnseen: hasMetadata(of: original) ? nil : true,
                        known: tag == known ? nil : known, renaming: rename?.begun, target: note(of: original)?.target)
                )
            })
    }

    func hasMade(_ object: S3Object, _ rename: MoveRecord) -> Bool { note(of: object)?.renaming == rename.begun }

    /// Objects are no copies of a rename any more.
    func disown(_ keys: [String]) {
        notes.note(
            keys.compactMap { key in
                guard var note = notes[key] else { return nil }
                note.renaming = nil
                return (key, note)
            })
    }

    /// Forgets objects before they are deleted.
    ///
    /// - Parameter delete: returns the keys of those that are left, whose notes are put back: all of them, if it throws.
    func forgetting(_ keys: [String], _ delete: () async throws -> [String]) async throws {
        let forgotten = keys.map { (key: $0, note: notes[$0]) }
        didDelete(keys)
        do {
            let left = Set(try await delete().map(KeyBytes.init))
            notes.note(forgotten.filter { left.contains(KeyBytes($0.key)) })
        } catch {
            notes.note(forgotten)
            throw error
        }
    }

    func didDelete(_ keys: [String]) { notes.note(keys.map { ($0, nil) }) }

    /// Whether an object is a copy of another. The server gives copies of large or encrypted objects other ETags: the record
    /// of the copy decides then.
    ///
    /// - Returns: nil where there is no record, and only the bytes can tell.
    func isCopy(_ copy: S3Object, of original: S3Object) -> Bool? {
        guard copy.size == original.size else { return false }
        if copy.tag == original.tag { return true }
        let note = note(of: copy)
        if note != nil, known(copy) == known(original) { return true }
        if note?.known != nil { return false }
        guard let made = copy.modified, let written = original.modified, made >= written else { return false }
        return nil
    }

    // MARK: - Servers that list other ETags

    /// The ETag that a request for an object has. Swift lists copies of multipart objects with another one.
    func requestedTag(of key: String, listedAs listed: String) -> String {
        guard let known = requested.withLock({ $0[KeyBytes(key)] }), known.listed == listed else { return listed }
        return known.requested
    }

    func note(requested tag: String, of key: String, listedAs listed: String) {
        requested.withLock { known in
            if known.count > 1000 { known = [:] }
            known[KeyBytes(key)] = (listed, tag)
        }
    }
}
