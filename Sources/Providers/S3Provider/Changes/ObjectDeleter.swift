import FileProviderPaths
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

    /// Deletes objects. One that was removed already is no error.
    ///
    /// - Returns: the keys of those that the server has kept, because they have another ETag by now.
    @discardableResult
    func delete(_ deletions: [Deletion]) async throws -> [String] {
        guard !deletions.isEmpty else { return [] }
        let support = preconditions.known ?? .none
        // A character that XML cannot hold would spoil the whole request.
        func isPlain(_ deletion: Deletion) -> Bool {
            deletion.key.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0xFFFE }
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
                if let kept = try await preconditions.delete(some, support.deletingMany) {
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

    /// - Returns: false when the object has another ETag.
    private func delete(_ deletion: Deletion, _ spelling: ConditionSupport.Spelling?) async throws -> Bool {
        var fields = HTTPFields()
        if let spelling, let tag = deletion.tag { fields["If-Match"] = spelling.value(tag) }
        let all = fields
        for attempt in 1... {
            do {
                _ = try await client.send { [client] in client.request("DELETE", deletion.key, fields: all) }
                return true
            } catch let failure as S3Failure where failure.status == 404 && failure.code != "NoSuchBucket" {
                return true
            } catch let failure as S3Failure where failure.isUnmetCondition || failure.isRace && attempt == 3 {
                return false
            } catch let failure as S3Failure where failure.isRace {
                try await Task.sleep(for: .milliseconds(100 * attempt))
            }
        }
        return true
    }
}
