import FileNames
import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// The objects below a prefix of a bucket, as files.
final class S3Remote: PathRemote {
    let client: S3Client
    let manager: any FileProviderManager
    let moves: MoveJournal
    let uploads: UploadJournal
    let records: ObjectRecords
    let tree: S3Tree
    let preconditions: Preconditions
    let deleter: ObjectDeleter
    let mover: ObjectMover
    private let writer: ObjectWriter
    private let isReady = Mutex(false)
    private let tidyingPause: Duration
    /// When uploads that were given up were looked for last.
    private let tidiedAt = Mutex<ContinuousClock.Instant?>(nil)

    init(client: S3Client, manager: any FileProviderManager, settings: S3Settings = S3Settings()) {
        self.client = client
        self.manager = manager
        tidyingPause = settings.tidyingPause
        let store = ReportingStore(of: manager)
        moves = MoveJournal(in: store, ledger: client.ledger)
        uploads = UploadJournal(in: store)
        records = ObjectRecords(in: store, ledger: client.ledger)
        tree = S3Tree(client: client, records: records, moves: moves)
        preconditions = Preconditions(client: client, pause: settings.probePause)
        deleter = ObjectDeleter(
            client: client, preconditions: preconditions, records: records, width: settings.width)
        let copier = ObjectCopier(
            client: client, preconditions: preconditions,
            multipart: MultipartUploads(client: client, journal: uploads, width: settings.width),
            largestCopy: settings.largestCopy)
        writer = ObjectWriter(tree: tree, preconditions: preconditions, copier: copier, settings: settings)
        mover = ObjectMover(
            client: client, records: records, moves: moves, copier: copier, deleter: deleter, settings: settings,
            report: { manager.report($0) })
    }

    /// The number of concurrent calls. The transport admits as many as the server serves.
    static let concurrentCalls = 64

    var traits: RemoteTraits {
        var traits = RemoteTraits()
        traits.hasSymbolicLinks = true
        traits.listsTrees = true
        traits.storesModificationDates = true
        traits.storesPermissions = true
        traits.concurrentCalls = Self.concurrentCalls
        traits.tagsAreOfContent = true
        traits.attributesComeWithContents = true
        traits.checksEmptiness = true
        let conditions = preconditions.known
        traits.checksConditions = conditions?.onWriting == true
        if let conditions { traits.peculiarities += conditions.peculiarities }
        return traits
    }

    func close() async {
        await client.transport.close()
        preconditions.cancelProbe()
        client.ledger.close()
    }

    // MARK: - Before every call

    /// Continues interrupted deletions of renames, also when only a connection broke.
    private func ready() async throws {
        // In a read-only domain they wait for a start in which it is writable.
        if manager.domain.isReadOnly { return }
        for record in moves.abandonedDeletions { _ = try await end(record) }
        if isReady.withLock({ $0 }) { return tidyUploads() }
        for record in moves.records
        where record.stage == .copying && FileTimestamp.now.seconds - record.begun > 7 * 86_400
            && !moves.isStuck(record)
        {
            guard try await end(record) else { return }
        }
        isReady.withLock { $0 = true }
        tidyUploads()
    }

    /// Aborts old uploads from time to time. Returns at once.
    private func tidyUploads() {
        let isDue = tidiedAt.withLock { last in
            if let last, ContinuousClock.now - last < tidyingPause { return false }
            last = .now
            return true
        }
        if isDue { Task { [writer] in await writer.copier.multipart.abortLeftovers() } }
    }

    /// Ends an interrupted rename. One that the server does not let us end must not fail the calls for other places.
    ///
    /// - Returns: false if the next call tries it again.
    /// - Throws: what makes the whole domain wait, and cancellation.
    private func end(_ record: MoveRecord) async throws -> Bool {
        do {
            try await S3Failure.translating { try await mover.undo(record) }
        } catch let error as FileProviderError {
            switch (error.code, error.code.reaction) {
            case (_, .latchDomain), (_, .stop): throw error
            // The server is busy, or this machine short of something.
            case (.providerDomainTemporarilyUnavailable, _), (.timedOut, _), (.posix, _): return false
            default:
                moves.noteStuck(record)
                manager.report("what was renamed cannot be deleted from '\(record.hidden)': \(error.message)")
            }
        }
        return true
    }

    /// Changes what is at a path once earlier changes there have ended, nothing of an interrupted rename is left there, and no
    /// request without a response may still be applied there.
    ///
    /// - Parameters:
    ///   - isTree: whether the change is about everything below, too.
    ///   - isEmptied: whether nothing is at the path any more when it is done.
    ///   - newPath: where a rename leads to: the same holds there.
    ///   - rename: what is to be continued if it was interrupted.
    /// - Throws: `noSuchItem` when the item was moved away meanwhile; `providerDomainTemporarilyUnavailable` when other
    ///   operations take long, or the new directory was moved away. Nothing was sent then.
    private func changing<Value: Sendable>(
        _ path: RemotePath, isTree: Bool, isEmptied: Bool = false, to newPath: RemotePath? = nil,
        by rename: MoveRecord? = nil, _ body: () async throws -> Value
    ) async throws -> Value {
        try await OperationLedger.preparing { try await ready() }
        let place = tree.extents(of: path, isTree: isTree)
        let target = newPath.map { tree.extents(of: $0, isTree: isTree) } ?? []
        let keys = rename.map { [$0.from, $0.to] } ?? [tree.key(of: path)]
        func isRenamed(_ path: RemotePath, _ renamed: [String]) -> Bool {
            renamed.contains { MoveJournal.holds($0, tree.key(of: path)) }
        }
        do {
            return try await client.ledger.perform(claiming: place + target, emptying: isEmptied ? place : []) {
                renamed in
                if isRenamed(path, renamed) { throw S3Tree.missing(path) }
                if let newPath, isRenamed(newPath, renamed) { throw OperationLedger.Busy() }
                try await OperationLedger.preparing {
                    try await S3Failure.translating {
                        // Also interrupted renames below: hidden copies would be moved, and be visible in the new place.
                        try await mover.settle(over: keys, but: rename)
                        try await client.settleDoubts(over: place + target)
                    }
                }
                return try await S3Failure.translating(body)
            }
        } catch is OperationLedger.Busy {
            throw OperationLedger.nothingSent(
                FileProviderError(
                    .providerDomainTemporarilyUnavailable,
                    "another operation on '\((newPath ?? path).name ?? "/")' is in progress"))
        }
    }

    // MARK: - Looking

    func entry(at path: RemotePath) async throws -> RemoteEntry {
        try await ready()
        return try await S3Failure.translating { [self] in
            // The root is there whatever may still be applied.
            if !path.names.isEmpty {
                try await client.settleDoubts(over: tree.extents(of: path, isTree: false))
            }
            guard let entry = try await tree.entry(at: path) else { throw S3Tree.missing(path) }
            return entry
        }
    }

    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        if let range, range.isEmpty { return try await entry(at: path) }
        try await ready()
        let key = tree.key(of: path)
        let listed = tag.map { records.tag(of: $0, at: key) }
        let requested = listed.map { records.requestedTag(of: key, listedAs: $0) }
        return try await S3Failure.translating { [self] in
            do {
                return try await read(path, requested, listedAs: listed, range, into: sink)
            } catch let error where S3Failure.isAboutVersion(error) {
                // In this order: a request with an older ETag than the listed one gets nothing.
                guard let listed, let other = try await client.object(key)?.tag,
                    try await client.listed(key)?.tag == listed
                else { throw error }
                records.note(requested: other, of: key, listedAs: listed)
                // A server that refuses the very ETag that the object has gets no precondition: the ETag of the response
                // is compared here.
                return try await read(
                    path, other, listedAs: listed, range, into: sink, isConditional: other != requested)
            }
        }
    }

    private func read(
        _ path: RemotePath, _ tag: String?, listedAs listed: String?, _ range: Range<Int64>?,
        into sink: any ContentSink, isConditional: Bool = true
    ) async throws -> RemoteEntry {
        var (object, fields) = try await client.read(
            tree.key(of: path), tag, range, isConditional: isConditional, into: sink)
        if let listed { object.tag = listed }
        records.noteMetadata(ObjectMetadata.attributes(fields), headers: ObjectMetadata.headers(fields), of: object)
        return records.file(object, name: path.name ?? "")
    }

    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        try await listing(path, try token.map(ListingToken.init), isFlat: false, limit) {
            [self] listing, token, prefix in
            if moves.hides(prefix) { throw S3Tree.missing(path) }
            if listing.unreadable > 0 {
                manager.report(
                    "\(listing.unreadable) keys in '/\(path.names.joined(separator: "/"))' are not shown: they are not "
                        + "UTF-8, or have no valid size or no ETag")
            }
            var namer = EntryNamer(objects: token?.objects ?? [])
            let entries = listing.entries.compactMap { entry -> RemoteEntry? in
                switch entry {
                case .prefix(let below):
                    return S3Tree.directory(namer.directory(String(below.dropping(prefix).dropLast()), key: below))
                case .object(let object): return tree.entry(object, in: prefix, &namer)
                }
            }
            let shown = try await tree.resolvingLinks(
                entries.map { (parent: path, entry: $0) }, of: listing, after: token?.objects ?? [])
            var part = RemoteListing(
                entries: shown.map { $0.entry },
                next: try ListingToken.bytes(listing.next, objects: namer.objects))
            part.leavesOut = listing.unreadable > 0
            return part
        }
    }

    func tree(below path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteTreeListing {
        try await listing(path, try token.map(ListingToken.init), isFlat: true, limit) {
            [self] listing, token, prefix in
            var walker = TreeWalker(root: path, open: token?.open ?? [], objects: token?.objects ?? [])
            for case .object(let object) in listing.entries {
                walker.take(object, below: prefix) { tree.entry($0, in: $1, &$2) }
            }
            return RemoteTreeListing(
                entries: try await tree.resolvingLinks(walker.found, of: listing, after: token?.objects ?? []),
                next: try ListingToken.bytes(listing.next, objects: walker.objects, open: walker.open))
        }
    }

    private func listing<Value: Sendable>(
        _ path: RemotePath, _ token: ListingToken?, isFlat: Bool, _ limit: Int,
        _ body: (S3Listing, ListingToken?, _ prefix: String) async throws -> Value
    ) async throws -> Value {
        try await ready()
        return try await S3Failure.translating { [self] in
            let prefix = tree.prefix(of: path)
            if token == nil { try await client.settleDoubts(over: [isFlat ? .below(prefix) : .within(prefix)]) }
            var listing = try await client.list(prefix: prefix, isFlat: isFlat, from: token?.next, limit: limit)
            let isEmpty = listing.entries.isEmpty && listing.unreadable == 0
            if token == nil, isEmpty, listing.next == nil, !path.names.isEmpty { throw S3Tree.missing(path) }
            listing.entries.removeAll { moves.hides($0.key) }
            return try await body(listing, token, prefix)
        }
    }

    // MARK: - Making and writing

    func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        if condition == .absent { try tree.check(path) }
        return try await changing(path, isTree: false) { [self] in
            try await writer.write(contents, to: path, attributes: attributes, if: condition)
        }
    }

    func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        try tree.check(path)
        return try await changing(path, isTree: true) { [self] in
            async let hasParent: Void = tree.requireDirectory(path.parent)
            try await tree.requireNothing(at: path)
            try await hasParent
            try await tree.mark(tree.prefix(of: path))
            return S3Tree.directory(path.name ?? "")
        }
    }

    func makeSymbolicLink(
        at path: RemotePath, to target: String, attributes: RemoteAttributes
    ) async throws -> RemoteEntry {
        try tree.check(path)
        guard FileNameText.bytes(of: target).count <= LinkNames.longestTarget else {
            throw FileProviderError(.cannotSynchronize, "the link's target is too long")
        }
        return try await changing(path, isTree: false) { [self] in
            try await writer.makeLink(at: path, to: target, attributes)
        }
    }

    func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        try await changing(path, isTree: false) { [self] in
            try await writer.set(attributes, of: path, kind: kind)
        }
    }

    // MARK: - Moving

    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        try tree.check(newPath)
        if path.name == KeyNames.content {
            // Its key is what all keys in the directory begin with, and a rename is of all of them.
            throw FileProviderError(.cannotSynchronize, "'\(KeyNames.content)' is a part of its directory")
        }
        let isTree = kind == .directory
        let (from, to) = (tree.key(of: path, kind), tree.key(of: newPath, kind))
        let rename = MoveRecord(from: from, to: to, stage: .copying, begun: 0)
        return try await changing(path, isTree: isTree, isEmptied: true, to: newPath, by: rename) { [self] in
            async let hasParent: Void = tree.requireDirectory(newPath.parent)
            async let isFree: Void = tree.requireNothing(at: newPath)
            guard let there = try await tree.found(at: path), there.entry.kind == kind else {
                throw S3Tree.missing(path)
            }
            records.sent.carry(tree.key(of: path), to: tree.key(of: newPath))
            try await hasParent
            try await isFree
            // The copies are made and the originals are deleted with preconditions.
            await preconditions.support()
            let copy: S3Object?
            do {
                copy = try await mover.move(
                    from: from, to: to, renaming: tree.key(of: path), listed: there.object
                ) {
                    try await tree.keepDirectory(path.parent)
                }
            } catch is ObjectCopier.Occupied {
                throw RemoteConditionFailure(present: try await tree.entry(at: newPath))
            }
            tree.forget(tree.prefix(of: path))
            return try await OperationLedger.result {
                let name = newPath.name ?? ""
                if let copy, kind == .file { return records.file(copy, name: name) }
                if let copy, case .link(let link) = try await tree.links.kind(of: copy, name: name) { return link }
                guard let moved = try await tree.entry(at: newPath) else { throw S3Tree.missing(newPath) }
                return moved
            }
        }
    }

    // MARK: - Deleting

    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try await changing(path, isTree: kind == .directory, isEmptied: true) { [self] in
            switch kind {
            case .directory:
                try await tree.keepDirectory(path.parent)
                if condition == .empty { try await deleteEmpty(path) } else { try await deleteTree(path) }
                tree.forget(tree.prefix(of: path))
            case .file: try await delete(object: tree.key(of: path), of: path, if: condition)
            case .symbolicLink: try await delete(link: tree.key(of: path, .symbolicLink), of: path)
            }
        }
    }
}
