import FileProvider
import HTTPTransport
import Synchronization

/// Deletes objects, one or a thousand at a time.
struct ObjectDeleter: Sendable {
    let client: S3Client
    let preconditions: Preconditions
    let records: ObjectRecords
    let width: Int

    func delete(_ keys: [String]) async throws {
        try await delete(keys.map { Deletion(key: $0) })
    }

    /// Deletes objects. One that was removed already is no error. Where the server checks no ETags, they are compared immediately
    /// before.
    ///
    /// - Returns: the keys of those that are kept, because they have another ETag by now.
    @discardableResult
    func delete(_ deletions: [Deletion]) async throws -> [String] {
        guard !deletions.isEmpty else { return [] }
        let support = preconditions.known ?? .none
        // A character that XML cannot hold would spoil the whole request.
        func isPlain(_ deletion: Deletion) -> Bool {
            deletion.key.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0xFFFE && $0.value != 0xFFFF }
        }
        let plain = deletions.filter(isPlain)
        var single = deletions.filter { !isPlain($0) }
        var left: [String] = []
        let onlyChecksOne = support.deleting != nil && support.deletingMany == nil && plain.contains { $0.tag != nil }
        if plain.count < 3 || !preconditions.deletesMany || onlyChecksOne {
            single += plain
        } else {
            for start in stride(from: 0, to: plain.count, by: 1000) {
                let some = Array(plain[start..<min(start + 1000, plain.count)])
                if let kept = try await deleteMany(some, support.deletingMany) {
                    left += kept
                } else {
                    single += some
                }
            }
        }
        let kept = Mutex<[String]>([])
        try await inParallel(single, width: width) { deletion in
            if try await !delete(deletion, support.deleting) { kept.withLock { $0.append(deletion.key) } }
        }
        left += kept.withLock { $0 }
        let keptKeys = Set(left.map(KeyBytes.init))
        records.didDelete(deletions.map(\.key).filter { !keptKeys.contains(KeyBytes($0)) })
        return left
    }

    /// Objects have other ETags, or are gone, before a request to delete them is repeated.
    private struct Changed: Error {}

    /// - Returns: as ``Preconditions/delete(_:_:recheck:)``.
    private func deleteMany(
        _ deletions: [Deletion], _ spelling: ConditionSupport.Spelling?
    ) async throws -> [String]? {
        guard spelling == nil, deletions.contains(where: { $0.tag != nil }) else {
            return try await preconditions.delete(deletions, spelling)
        }
        while true {
            let (unchanged, changed) = try await compare(deletions)
            if unchanged.isEmpty { return changed }
            do {
                let left = try await preconditions.delete(unchanged, nil) {
                    if try await compare(unchanged).unchanged.count != unchanged.count { throw Changed() }
                }
                return left.map { changed + $0 }
            } catch is Changed {
                // The rest of them, after another comparison.
            }
        }
    }

    /// Compares objects with a listing, because requests for the objects themselves may have responses with other ETags. Of a few
    /// objects each is requested, and one that has not the wanted ETag then is listed alone, and it is also checked whether the
    /// listing is older. An object that is not listed is requested: a listing may not show yet what another client has written.
    ///
    /// - Returns: those that have the wanted ETags, and the keys of those that have others. What is gone is left out.
    private func compare(_ deletions: [Deletion]) async throws -> (unchanged: [Deletion], changed: [String]) {
        let found = Mutex<[KeyBytes: String]>([:])
        let wanted = Set(deletions.map { KeyBytes($0.key) })
        if deletions.count <= max(width, 2) {
            try await inParallel(deletions, width: width) { deletion in
                if let tag = deletion.tag, try await client.hasTag(tag, deletion.key) {
                    return found.withLock { $0[KeyBytes(deletion.key)] = tag }
                }
                guard var tag = try await client.listed(deletion.key)?.tag else { return }
                // No object has the empty tag.
                if tag == deletion.tag, try await client.isOutdated(deletion.key, listedAs: tag) { tag = "" }
                found.withLock { [tag] in $0[KeyBytes(deletion.key)] = tag }
            }
        } else if let first = deletions.first?.key,
            let last = deletions.map(\.key).max(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        {
            let prefix = deletions.reduce(first.utf8[...]) { prefix, deletion in
                prefix.prefix(zip(prefix, deletion.key.utf8).prefix { $0 == $1 }.count)
            }
            // Cut after an ASCII character, so that it stays text.
            let directory = prefix.lastIndex(of: UInt8(ascii: "/")).map { prefix[...$0] } ?? prefix.prefix(0)
            var reader = KeyReader(client: client, prefix: String(decoding: directory, as: UTF8.self))
            while let object = try await reader.next(), !last.utf8.lexicographicallyPrecedes(object.key.utf8) {
                guard wanted.contains(KeyBytes(object.key)) else { continue }
                found.withLock { $0[KeyBytes(object.key)] = object.tag }
            }
        }
        let unlisted = found.withLock { found in deletions.filter { found[KeyBytes($0.key)] == nil } }
        try await inParallel(unlisted, width: width) { deletion in
            let tag = try await client.object(deletion.key)?.tag
            found.withLock { $0[KeyBytes(deletion.key)] = tag }
        }
        let tags = found.withLock { $0 }
        let present = deletions.filter { tags[KeyBytes($0.key)] != nil }
        func isUnchanged(_ deletion: Deletion) -> Bool {
            deletion.tag == nil || deletion.tag == tags[KeyBytes(deletion.key)]
        }
        return (present.filter(isUnchanged), present.filter { !isUnchanged($0) }.map(\.key))
    }

    /// - Returns: false when the object has another ETag.
    private func delete(_ deletion: Deletion, _ spelling: ConditionSupport.Spelling?) async throws -> Bool {
        var fields = HTTPFields()
        if let spelling, let tag = deletion.tag { fields["If-Match"] = spelling.value(tag) }
        let all = fields
        let isCompared = spelling == nil && deletion.tag != nil
        let recheck: @Sendable () async throws -> Void = {
            if try await compare([deletion]).unchanged.isEmpty { throw Changed() }
        }
        for attempt in 1... {
            do {
                if isCompared {
                    let (unchanged, changed) = try await compare([deletion])
                    if unchanged.isEmpty { return changed.isEmpty }
                }
                _ = try await client.send { [client] in
                    client.request("DELETE", deletion.key, fields: all, recheck: isCompared ? recheck : nil)
                }
                return true
            } catch is Changed {
                continue
            } catch let failure as S3Failure where failure.isMissing {
                return true
            } catch let failure as S3Failure where failure.isUnmetCondition || failure.isRace && attempt >= 3 {
                return false
            } catch let failure as S3Failure where failure.isRace {
                try await Task.sleep(for: .milliseconds(100 * attempt))
            }
        }
        return true
    }
}
