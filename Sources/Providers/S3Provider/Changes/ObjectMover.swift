import FileProvider
import FileProviderPaths
import Synchronization

/// Renames: copies on the server, and nothing is deleted before all copies are there. What is half done is hidden, is known
/// after a crash, and is continued or undone.
struct ObjectMover: Sendable {
    let client: S3Client
    let records: ObjectRecords
    let moves: MoveJournal
    let copier: ObjectCopier
    let deleter: ObjectDeleter
    let settings: S3Settings
    /// Tells the user of something.
    let report: @Sendable (String) -> Void

    /// Makes a rename, or continues an earlier attempt.
    ///
    /// - Parameters:
    ///   - name: the key of the item without what tells its kind, for the operations that wait for it.
    ///   - listed: the object that is renamed, as it was just listed; nil for a directory.
    ///   - willDelete: called when all copies are there.
    /// - Returns: the copy of one object, where the server has made sure that it is the rename's own; else the new place says what is there.
    @discardableResult
    func move(
        from: String, to: String, renaming name: String, listed: S3Object? = nil,
        willDelete: () async throws -> Void
    ) async throws -> S3Object? {
        try await moves.run(from: from) { () async throws -> S3Object? in
            var record = try moves.record(from: from) ?? moves.begin(from: from, to: to)
            let made: CopiedObject?
            do {
                made = try await copyAll(record, listed)
            } catch is Growth {
                try await deleteCopies(record)
                // Meanwhile the other client finds nothing new, and ends its renaming.
                try await Task.sleep(for: .seconds(settings.pauseAfterGrowth.upperBound))
                throw Self.restless(record)
            } catch is ObjectCopier.Occupied {
                try await deleteCopies(record)
                throw ObjectCopier.Occupied()
            } catch let failure as S3Failure {
                // The next attempt would fail, too.
                try? await deleteCopies(record)
                throw failure
            }
            try await willDelete()
            record.stage = .deleting
            try moves.save(record)
            client.ledger.noteRenamed(name)
            guard let one = made else {
                try await deleteOriginals(record)
                return nil
            }
            // Where only a mark tells whose the copy is, a listing has to show which object is there now. The original is compared
            // when it is deleted.
            let isOwn = isTrusted(one.copy, record)
            let copy = try await isOwn ? one.copy : client.listed(record.to)
            try await deleteOriginals(among: [(original: one.original, copy: copy)], record)
            moves.remove(record)
            return isOwn ? copy : nil
        }
    }

    // MARK: - Interrupted renames

    /// Undoes interrupted renames before something is made, written or deleted in their old or new places: a copy of a
    /// removed object would become visible in the end. A rename that the server does not let us undo blocks nothing; a
    /// change in its old place, or in its hidden one, drops its record, because what is made there must be shown.
    ///
    /// The caller has claimed the keys, so a rename that runs there is one that another caller undoes.
    ///
    /// - Parameter wanted: a rename that is to be continued.
    func settle(over keys: [String], but wanted: MoveRecord? = nil) async throws {
        for record in moves.records where moves.isStuck(record) && !moves.isRunning(record) {
            let isOver = keys.contains { key in
                [record.from, record.hidden].contains { MoveJournal.holds($0, key) || MoveJournal.holds(key, $0) }
            }
            if isOver, !record.hasPlaces(of: wanted) { moves.remove(record) }
        }
        while let record = keys.lazy.flatMap({ moves.records(over: $0) }).first(where: {
            !$0.hasPlaces(of: wanted) && !moves.isStuck($0) || moves.isRunning($0)
        }) {
            if moves.isRunning(record) { try await moves.run(from: record.from) {} } else { try await undo(record) }
        }
    }

    /// Ends a rename that was interrupted: while it was copying, the originals stay; while it was deleting, the copies do.
    func undo(_ record: MoveRecord) async throws {
        try await moves.run(from: record.from) {
            // Another caller may have been faster.
            guard let record = moves.record(from: record.from) else { return }
            await copier.preconditions.support()
            switch record.stage {
            case .copying: try await deleteCopies(record)
            case .deleting: try await deleteOriginals(record)
            }
        }
    }

    /// Deletes the rename's own copies. A copy that is still being made would become visible afterwards.
    ///
    /// A copy of what the original was earlier stays if an earlier process has begun the rename: it may be the only one. Another client may
    /// have deleted the original because the copy was there, and have made another one, and nothing tells that from a change of the
    /// original.
    private func deleteCopies(_ record: MoveRecord) async throws {
        try await client.settleDoubts(over: [record.isTree ? .below(record.to) : .exactly(record.to)])
        var kept: [String] = []
        try await join(record) { pairs in
            try await forOwn(among: pairs, record) { own in
                let copies = own.filter { $0.isCurrent || moves.hasBegun(record) }
                if !moves.hasBegun(record) { kept += own.filter { !$0.isCurrent }.map(\.copy.key) }
                // After a SIGKILL a note would take for the rename's own what another client copies to the same key then. Of a copy without a
                // mark nothing else tells whose it is, if the server does not delete it.
                try await records.forgetting(copies.map(\.copy.key)) {
                    try await deleter.delete(copies.map { Deletion(key: $0.copy.key, tag: $0.copy.tag) })
                }
            }
        }
        moves.remove(record)
        guard let first = kept.first else { return }
        records.disown(kept)
        let others = kept.count > 1 ? " and \(kept.count - 1) others are" : " is"
        report(
            "renaming '\(record.from)' has ended, and '\(first)'\(others) kept: it may be the only copy of what was in "
                + "its old place before another client wrote there")
    }

    /// Deletes the originals of the rename's own copies. A copy that another client has made may be deleted by that client.
    private func deleteOriginals(_ record: MoveRecord) async throws {
        try await join(record) { pairs in try await deleteOriginals(among: pairs, record) }
        moves.remove(record)
    }

    private func deleteOriginals(
        among pairs: [(original: S3Object, copy: S3Object?)], _ record: MoveRecord
    ) async throws {
        try await forOwn(among: pairs, record) { own in
            try await deleter.delete(
                own.filter(\.isCurrent).map { Deletion(key: $0.original.key, tag: $0.original.tag) })
        }
    }

    /// A copy that a rename has made.
    private struct OwnCopy {
        var original: S3Object
        var copy: S3Object
        /// Whether the original has not changed since.
        var isCurrent: Bool
    }

    /// Gives the pairs whose copy the rename has made to a body, which deletes something. Those for which the server must be asked come a
    /// few at a time, so that little time lies between the response and the deletion.
    private func forOwn(
        among pairs: [(original: S3Object, copy: S3Object?)], _ record: MoveRecord,
        _ body: ([OwnCopy]) async throws -> Void
    ) async throws {
        var (known, others): ([OwnCopy], [(original: S3Object, copy: S3Object)]) = ([], [])
        for (original, copy) in pairs {
            guard let copy else { continue }
            if isTrusted(copy, record), let isCurrent = records.isCopy(copy, of: original) {
                known.append(OwnCopy(original: original, copy: copy, isCurrent: isCurrent))
            } else {
                others.append((original, copy))
            }
        }
        if !known.isEmpty { try await body(known) }
        for start in stride(from: 0, to: others.count, by: deleter.width) {
            let own = Mutex<[OwnCopy]>([])
            let some = Array(others[start..<min(start + deleter.width, others.count)])
            try await inParallel(some, width: deleter.width) { original, copy in
                guard try await isOwn(copy, of: original, record) else { return }
                let isCurrent = try await isCopy(copy, of: original)
                own.withLock {
                    $0.append(OwnCopy(original: original, copy: copy, isCurrent: isCurrent))
                }
            }
            let found = own.withLock { $0 }
            if !found.isEmpty { try await body(found) }
        }
    }

    /// Whether the note of a copy is enough. Where the server does not check that the key of a copy is free, two machines may copy to it at
    /// the same moment. It was not seen to check that of a copy in parts.
    private func isTrusted(_ copy: S3Object, _ record: MoveRecord) -> Bool {
        records.hasMade(copy, record) && copier.preconditions.known?.onCopying == true
            && copy.size <= copier.largestCopy
    }

    /// Whether a rename has made a copy of an object, or of its earlier content: by its note, or by its mark where the copy was not noted,
    /// because of a SIGKILL or a lost response. Another client may make the same copy: neither ETag nor bytes tell whose it is.
    private func isOwn(_ copy: S3Object, of original: S3Object, _ record: MoveRecord) async throws -> Bool {
        if isTrusted(copy, record) { return true }
        let isNoted = records.hasMade(copy, record)
        guard let own = record.mark(at: copy.key) else { return isNoted }
        guard let mark = try await client.renameMark(of: copy.key) else { return false }
        if isNoted { return mark.isEmpty || mark.utf8.starts(with: own.utf8) }
        // The original may have changed since.
        if mark == record.mark(at: copy.key, ofCopied: copy.tag) { return true }
        guard mark == record.mark(at: copy.key, ofCopied: original.tag),
            // Another client may have written it and kept the mark.
            try await isCopy(copy, of: original)
        else { return false }
        records.didCopy([(original, copy.key, copy.tag)], in: record)
        return true
    }

    /// Whether a listed object is the copy whose response had an ETag. A listing may have another ETag than the response.
    private func isOwn(
        _ copy: S3Object, madeAs tag: String, of original: S3Object, _ record: MoveRecord
    ) async throws -> Bool {
        if copy.tag == tag { return true }
        if try await client.object(copy.key)?.tag == tag { return true }
        return try await isOwn(copy, of: original, record)
    }

    private func isCopy(_ copy: S3Object, of original: S3Object) async throws -> Bool {
        if let isKnown = records.isCopy(copy, of: original) { return isKnown }
        guard let hash = try await ObjectHash.of(copy, client) else { return false }
        return try await ObjectHash.of(original, client) == hash
    }

    // MARK: - Copying

    /// More and more originals appear, as when another client moves the new place into the old one, and copies what is copied here.
    private struct Growth: Error {}

    /// The ETags of an original and of the copy that was made of it.
    private struct MadeCopy: Equatable {
        var original: String
        var tag: String
    }

    /// An object and its copy, as both were listed.
    private struct CopiedObject {
        var original: S3Object
        var copy: S3Object
    }

    /// Copies what is in the old place, until nothing is left to copy.
    ///
    /// - Returns: nil for a directory.
    /// - Throws: ``Growth``.
    private func copyAll(_ record: MoveRecord, _ listed: S3Object?) async throws -> CopiedObject? {
        guard record.isTree else { return try await copyOne(record, listed) }
        // How many originals there were in the first pass, and in the last one.
        var (first, last) = (0, 0)
        // By the keys of the copies, where the copy got another ETag than the original, or may have got one.
        let copied = Mutex<[KeyBytes: MadeCopy]>([:])
        @Sendable func isCopied(_ original: S3Object, as copy: S3Object) -> Bool {
            copy.tag == original.tag && records.hasMade(copy, record)
                || copied.withLock { $0[KeyBytes(copy.key)] } == MadeCopy(original: original.tag, tag: copy.tag)
        }
        // Other clients may write meanwhile: until a listing shows nothing more to copy.
        for pass in 1...20 {
            var missing = 0
            let hasGrown = last > 2 * first + settings.usualGrowth
            last = 0
            if hasGrown { try await Task.sleep(for: .seconds(Double.random(in: settings.pauseAfterGrowth))) }
            try await join(record) { pairs in
                // A listing may show another ETag of a copy than the response, or what another client has written over it.
                let doubtful = pairs.filter { original, copy in
                    guard let copy, let made = copied.withLock({ $0[KeyBytes(copy.key)] }) else { return false }
                    return made.original == original.tag && made.tag != copy.tag
                }
                try await inParallel(doubtful, width: deleter.width) { original, copy in
                    guard let copy, let made = copied.withLock({ $0[KeyBytes(copy.key)] }),
                        try await isOwn(copy, madeAs: made.tag, of: original, record)
                    else { return }
                    copied.withLock { $0[KeyBytes(copy.key)]?.tag = copy.tag }
                }
                let due = pairs.filter { original, copy in
                    copy.map { $0.size != original.size || !isCopied(original, as: $0) } ?? true
                }
                missing += due.count
                last += pairs.count
                if hasGrown, missing > 0 { throw Growth() }
                records.didCopy(
                    pairs.compactMap { original, copy in
                        guard let copy, isCopied(original, as: copy),
                            records.known(copy) != records.known(original) || !records.hasMade(copy, record)
                        else { return nil }
                        return (original, copy.key, copy.tag)
                    }, in: record)
                let made = Mutex<[(original: S3Object, key: String, tag: String)]>([])
                // Also where one of them fails: the next attempt knows by the notes which copies are its own.
                defer { records.didCopy(made.withLock { $0 }, in: record) }
                try await inParallel(due, width: deleter.width) { original, there in
                    let key = record.to + original.key.dropping(record.from)
                    guard let tag = try await copyUnchanged(original, to: key, insteadOf: there, in: record) else {
                        return
                    }
                    if tag != original.tag || original.tag.contains("-") {
                        copied.withLock { $0[KeyBytes(key)] = MadeCopy(original: original.tag, tag: tag) }
                    }
                    made.withLock { $0.append((original, key, tag)) }
                }
            }
            if missing == 0 { return nil }
            if pass == 1 { first = last }
        }
        throw Self.restless(record)
    }

    /// - Parameter listed: what is copied first. If it has changed since, that is noticed as a change after a listing is.
    private func copyOne(_ record: MoveRecord, _ listed: S3Object?) async throws -> CopiedObject {
        for attempt in 1...20 {
            var found = attempt == 1 ? listed : nil
            if found == nil { found = try await client.listed(record.from) }
            guard let original = found else {
                throw FileProviderError(.noSuchItem, "'\(record.from)' was removed from the bucket")
            }
            guard let tag = try await copyUnchanged(original, to: record.to, insteadOf: nil, in: record) else {
                continue
            }
            guard let copy = try await client.listed(record.to) else {
                throw FileProviderError(.malformedResponse, "a copy that the server made is not there")
            }
            // Another client may have written it since.
            guard try await isOwn(copy, madeAs: tag, of: original, record) else { throw ObjectCopier.Occupied() }
            records.didCopy([(original, record.to, copy.tag)], in: record)
            // An equal ETag says what was copied; else the original must not have changed meanwhile.
            if copy.tag == original.tag { return CopiedObject(original: original, copy: copy) }
            if try await client.listed(record.from)?.tag == original.tag {
                return CopiedObject(original: original, copy: copy)
            }
        }
        throw Self.restless(record)
    }

    /// Copies an object, unless that was done before, and replaces nothing but an older copy.
    ///
    /// - Parameter there: the listed object at the key.
    /// - Returns: the copy's ETag; nil when the original has changed, or the key is free only now.
    /// - Throws: ``ObjectCopier/Occupied``.
    private func copyUnchanged(
        _ original: S3Object, to key: String, insteadOf there: S3Object?, in record: MoveRecord
    ) async throws -> String? {
        if let there, let tag = try await settle(there, as: original, in: record) { return tag }
        do {
            return try await copier.copy(original, toFree: key, marked: record.mark(at: key, ofCopied: original.tag))
        } catch let failure as S3Failure where failure.isUnmetCondition || failure.isRace {
            return nil
        } catch is ObjectCopier.Occupied {
            // An attempt without a response may have made the copy.
            var there = try await client.listed(key)
            if there == nil { there = try await client.object(key) }
            guard let there else { return nil }
            return try await settle(there, as: original, in: record)
        }
    }

    /// - Returns: the ETag of an object that is the copy of another; nil for an older copy, which is deleted then.
    /// - Throws: ``ObjectCopier/Occupied`` where another client has written it, or where an older copy stays, as ``deleteCopies(_:)`` says.
    private func settle(
        _ there: S3Object, as original: S3Object, in record: MoveRecord
    ) async throws -> String? {
        guard try await isOwn(there, of: original, record) else { throw ObjectCopier.Occupied() }
        if try await isCopy(there, of: original) { return there.tag }
        guard moves.hasBegun(record), try await deleter.delete([Deletion(key: there.key, tag: there.tag)]).isEmpty
        else {
            throw ObjectCopier.Occupied()
        }
        return nil
    }

    private static func restless(_ record: MoveRecord) -> FileProviderError {
        FileProviderError(
            .providerDomainTemporarilyUnavailable, "'\(record.from)' is written all the time: it cannot be renamed now")
    }

    // MARK: - Pairs

    /// All objects in the old place, each with the object in the same place in the new one, up to a thousand at a time.
    private func join(
        _ record: MoveRecord, _ take: ([(original: S3Object, copy: S3Object?)]) async throws -> Void
    ) async throws {
        guard record.isTree else {
            // Another client may write the original at any time: it is requested last.
            let copy = try await client.listed(record.to)
            guard let original = try await client.listed(record.from) else { return }
            return try await take([(original, copy)])
        }
        func rest(_ object: S3Object, after prefix: String) -> Substring.UTF8View {
            object.key.utf8.dropFirst(prefix.utf8.count)
        }
        var originals = KeyReader(client: client, prefix: record.from)
        var copies = KeyReader(client: client, prefix: record.to)
        var batch: [(original: S3Object, copy: S3Object?)] = []
        try await originals.advance()
        if originals.current != nil { try await copies.advance() }
        while let original = originals.current {
            let wanted = rest(original, after: record.from)
            while let copy = copies.current, rest(copy, after: record.to).lexicographicallyPrecedes(wanted) {
                try await copies.advance()
            }
            let isHere = copies.current.map { rest($0, after: record.to).elementsEqual(wanted) } ?? false
            batch.append((original, isHere ? copies.current : nil))
            if batch.count >= 1000 {
                try await take(batch)
                batch = []
            }
            try await originals.advance()
        }
        if !batch.isEmpty { try await take(batch) }
    }
}
