import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// Listings that are older than requests that were sent, as a busy OpenStack Swift gives them. The object itself decides.
extension S3Client {
    /// Corrects a listing that is older than requests: where it differs from what they were acknowledged to do, or one of them
    /// had no response, the object itself is requested.
    ///
    /// - Parameters:
    ///   - isFirst: whether it begins with the prefix.
    ///   - tick: when it was requested. A listing that does not show what ended later is not late.
    func current(
        _ listing: S3Listing, prefix: String, isFlat: Bool, isFirst: Bool, requestedAt tick: LedgerState.Tick
    ) async throws -> S3Listing {
        let changes = ledger.recentChanges(below: prefix)
        if changes.isEmpty { return listing }
        var listing = listing
        var looked: Set<KeyBytes> = []
        var due: [Doubtful] = []
        let (first, last) = (listing.entries.first?.key, listing.entries.last?.key)
        for change in changes {
            let key = String(decoding: change.path, as: UTF8.self)
            // Another part of the listing shows it.
            if listing.next != nil, last.map({ $0.utf8.lexicographicallyPrecedes(change.path) }) ?? true {
                continue
            }
            if !isFirst, first.map({ change.path.lexicographicallyPrecedes($0.utf8) }) ?? true { continue }
            let rest = change.path.dropFirst(prefix.utf8.count)
            if !isFlat, let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
                let below = prefix + String(decoding: Array(rest[...slash]), as: UTF8.self)
                // A deletion shows no prefix; a later change below it may.
                if change.effect == .deleted, !change.isUncertain, listing.index(of: below) == nil { continue }
                if looked.insert(KeyBytes(below)).inserted {
                    try await put(change, of: below, right: &listing, requestedAt: tick)
                }
                continue
            }
            var shown: S3Object?
            if let index = listing.index(of: key), case .object(let object) = listing.entries[index] { shown = object }
            if !change.isUncertain {
                switch change.effect {
                case .written(let tag): if let shown, tag == nil || tag == shown.tag { continue }
                case .deleted: if shown == nil { continue }
                default: continue
                }
            }
            due.append(Doubtful(change: change, key: key, shown: shown))
        }
        for (one, present) in try await lookedUp(due) {
            correct(one, as: present, in: &listing, requestedAt: tick)
        }
        return listing
    }

    /// A key of which a listing and the ledger say different things.
    private struct Doubtful {
        var change: LedgerState.Finished
        var key: String
        /// The object in the listing.
        var shown: S3Object?
    }

    /// How many objects are requested at once.
    private static let width = 16

    private func lookedUp(_ due: [Doubtful]) async throws -> [(Doubtful, S3Object?)] {
        let found = Mutex<[KeyBytes: S3Object]>([:])
        try await inParallel(due, width: Self.width) { [self] one in
            let isDecided = one.change.isUncertain && !ledger.isInDoubt(.exactly(one.key))
            let present = try await object(one.key)
            if isDecided { ledger.settle(one.change, as: present.map { .written(tag: $0.tag) } ?? .deleted) }
            found.withLock { $0[KeyBytes(one.key)] = present }
        }
        let objects = found.withLock { $0 }
        return due.map { ($0, objects[KeyBytes($0.key)]) }
    }

    private func correct(
        _ one: Doubtful, as present: S3Object?, in listing: inout S3Listing, requestedAt tick: LedgerState.Tick
    ) {
        let (change, key, shown) = (one.change, one.key, one.shown)
        if present?.tag == shown?.tag, present?.size == shown?.size {
            if !change.isUncertain { ledger.forget(change) }
            return
        }
        if listsOtherTags, let shown, shown.size == present?.size,
            change.isUncertain || change.effect == .written(tag: present?.tag)
        {
            // It is the written content, with the ETag that this server lists.
            if !change.isUncertain { ledger.acknowledge(key, .written(tag: shown.tag)) }
            return
        }
        if change.tick <= tick { noteLateListing() }
        if let index = listing.index(of: key) { listing.entries.remove(at: index) }
        if let present { listing.insert(.object(present)) }
    }

    /// Whether an object has an ETag, by the object itself. False does not say that it has another: some servers list other ETags than
    /// they give for the objects.
    func hasTag(_ tag: String, _ key: String) async throws -> Bool {
        if listsOtherTags { return false }
        return try await object(key)?.tag == tag
    }

    /// Whether another client has written an object since the version that a listing shows. Some servers list other ETags than they give for
    /// the objects: then the dates decide.
    func isOutdated(_ key: String, listedAs tag: String) async throws -> Bool {
        if listsOtherTags { return false }
        guard let fields = try await ifExists({ try await head(key).fields }),
            let present = fields["ETag"].map(S3Object.quoted), present != tag,
            let date = fields["Last-Modified"].flatMap({ HTTPDate.seconds(from: $0) }),
            let shown = try await listed(key), shown.tag == tag, let modified = shown.modified
        else { return false }
        // Fractions of a second are rounded in either direction.
        return date > modified.seconds + 1
    }

    /// Shows a prefix where one of its keys was written, and hides it where all keys were deleted.
    private func put(
        _ change: LedgerState.Finished, of below: String, right listing: inout S3Listing,
        requestedAt tick: LedgerState.Tick
    ) async throws {
        let index = listing.index(of: below)
        // Whether a shown prefix has keys left costs a request each time: it is sent only to servers that were late before.
        let mayBeDeleted = change.effect == .deleted || change.isUncertain
        if index != nil, !mayBeDeleted || !listsLate { return }
        let isThere = try await !list(prefix: below, isFlat: true).entries.isEmpty
        if isThere == (index != nil) { return }
        if change.tick <= tick { noteLateListing() }
        if let index { listing.entries.remove(at: index) } else { listing.insert(.prefix(below)) }
    }
}

extension S3Listing {
    fileprivate mutating func insert(_ entry: Entry) {
        entries.insert(entry, at: entries.position(of: entry.key.utf8, by: \.key.utf8))
    }
}
