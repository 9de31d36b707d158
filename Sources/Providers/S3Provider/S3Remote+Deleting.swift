import Crypto
import FileProvider
import Foundation
import HTTPTransport
import PathAddressing
import Synchronization

/// Deleting objects, one or a thousand at a time.
extension S3Remote {
    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try await ready()
        try await changingOne(path, isTree: kind == .directory, isEmptied: true) { [self] in
            switch kind {
            case .directory:
                try await keepDirectory(path.parent)
                if condition == .empty {
                    try await deleteEmpty(path)
                } else {
                    try await deleteTree(prefix(of: path))
                }
            case .file:
                try await delete(object: key(of: path), of: path, if: condition)
            case .symbolicLink:
                try await delete(object: key(of: path) + LinkNames.suffix, of: path, if: .always)
            }
        }
    }

    /// Deletes what has a name. Where the server checks no conditions it is looked at last, with nothing between the look
    /// and the request.
    private func delete(object key: String, of path: RemotePath, if condition: RemoteCondition) async throws {
        guard case .unchanged(let content) = condition else {
            guard try await object(key) != nil else { return }
            try await keepDirectory(path.parent)
            return _ = try await delete([Deletion(key: key)])
        }
        let tag = tag(of: content, at: key)
        let isChecked = await conditions().deleting != nil
        try await keepDirectory(path.parent)
        if !isChecked {
            // As listings have it, for a request for the object itself may be answered with another tag.
            guard let there = try await listed(key) else { return }
            guard there.tag == tag else { throw RemoteConditionFailure(present: try await present(at: path)) }
        }
        let left = try await delete([Deletion(key: key, tag: tag)])
        guard !left.isEmpty, let there = try await present(at: path) else { return }
        guard try await has(content, at: path, key: key) else { throw RemoteConditionFailure(present: there) }
        // The server refuses the ETag that the object has: nobody else has changed it.
        state.withLock { state in
            state.conditions?.deleting = nil
            state.conditions?.deletingMany = nil
        }
        try await delete([Deletion(key: key, tag: tag)])
    }

    /// Deletes a directory that holds nothing, and never more than what was seen of it: another may just be putting
    /// something there. What arrived there after all, long after it was sent again, or deleted, is nothing.
    private func deleteEmpty(_ path: RemotePath) async throws {
        let prefix = prefix(of: path)
        _ = await conditions()
        var deletions: [Deletion] = []
        var reader = KeyReader(client: client, prefix: prefix)
        while let object = try await reader.next() {
            let below = object.key.dropping(prefix)
            let isLeftover = client.ledger.isLeftover(object.key, tag: object.tag)
            let isNothing = below.isEmpty ? object.size == 0 : HiddenName.isOne(below) || isLeftover
            guard isNothing else {
                throw RemoteConditionFailure(
                    present: RemoteEntry(name: path.name ?? "", kind: .directory, tag: [], isTagStrong: false))
            }
            deletions.append(Deletion(key: object.key, tag: object.tag))
        }
        try await delete(deletions)
        forget(prefix)
    }

    /// Deletes all keys with a prefix, those of deeper places first within each thousand; the directory's own object goes
    /// in the end, so that what is broken off is still a directory.
    private func deleteTree(_ prefix: String) async throws {
        var token: String?
        var check = CycleCheck<String>()
        repeat {
            let listing = try await client.list(prefix: prefix, isFlat: true, from: token)
            try check.check(listing.next, of: "'\(prefix)'")
            let keys = listing.entries.map(\.key).filter { !$0.utf8.elementsEqual(prefix.utf8) }
            try await delete(keys)
            token = listing.next
        } while token != nil
        try await delete([prefix])
        forget(prefix)
    }

    /// An object that is to be deleted.
    struct Deletion: Sendable {
        var key: String
        /// Only while it has this tag, where the server can see to that; nil whatever it is.
        var tag: String?
    }

    func delete(_ keys: [String]) async throws {
        try await delete(keys.map { Deletion(key: $0) })
    }

    /// Deletes objects. Those that are gone already are no mistake.
    ///
    /// - Returns: the keys of those that the server has kept, because they have another tag by now.
    @discardableResult
    func delete(_ deletions: [Deletion]) async throws -> [String] {
        guard !deletions.isEmpty else { return [] }
        let (support, deletesMany) = state.withLock { ($0.conditions ?? ConditionSupport.none, $0.deletesMany) }
        // A character that XML cannot hold would spoil the whole request.
        let (plain, strange) = deletions.partitioned { deletion in
            deletion.key.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0xFFFE }
        }
        var single = strange
        var left: [String] = []
        let onlyChecksOne = support.deleting != nil && support.deletingMany == nil && plain.contains { $0.tag != nil }
        if plain.count < 3 || !deletesMany || onlyChecksOne {
            single += plain
        } else {
            for start in stride(from: 0, to: plain.count, by: 1000) {
                let some = Array(plain[start..<min(start + 1000, plain.count)])
                if let kept = try await deleteTogether(some, support.deletingMany) {
                    left += kept
                } else {
                    single += some
                }
            }
        }
        let kept = Mutex<[String]>([])
        try await inParallel(single) { deletion in
            if try await !self.delete(deletion, support.deleting) {
                kept.withLock { $0.append(deletion.key) }
            }
        }
        left += kept.withLock { $0 }
        let keptKeys = Set(left.map(KeyBytes.init))
        let gone = deletions.map(\.key).filter { !keptKeys.contains(KeyBytes($0)) }
        dates.remove(gone)
        copies.remove(gone)
        return left
    }

    /// - Returns: false when the object has another tag.
    private func delete(_ deletion: Deletion, _ spelling: ConditionSupport.Spelling?) async throws -> Bool {
        var fields = HTTPFields()
        if let spelling, let tag = deletion.tag { fields["If-Match"] = spelling.value(tag) }
        let all = fields
        for attempt in 1... {
            do {
                _ = try await client.send { [client] in client.request("DELETE", deletion.key, fields: all) }
                break
            } catch let failure as S3Failure where failure.status == 404 && failure.code != "NoSuchBucket" {
                break
            } catch let failure as S3Failure where failure.isUnmetCondition {
                return false
            } catch let failure as S3Failure where failure.isRace && attempt < 3 {
                try await Task.sleep(for: .milliseconds(100 * attempt))
            } catch let failure as S3Failure where failure.isRace {
                return false
            }
        }
        return true
    }

    /// - Parameter spelling: how the server wants the ETags; nil where it does not look at them.
    /// - Returns: the keys of those that have another tag; nil when the server does not know this request.
    func deleteTogether(
        _ deletions: [Deletion], _ spelling: ConditionSupport.Spelling?
    ) async throws -> [String]? {
        func escaped(_ text: String) -> String {
            text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
        }
        let listed = deletions.map { deletion in
            let tag = spelling.flatMap { spelling in
                deletion.tag.map { "<ETag>\(escaped(spelling.value($0)))</ETag>" }
            }
            return "<Object><Key>\(escaped(deletion.key))</Key>\(tag ?? "")</Object>"
        }
        let body = Array(
            "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>\(listed.joined())</Delete>"
                .utf8)
        let digest = Data(Insecure.MD5.hash(data: body)).base64EncodedString()
        let answer: HTTPResponse
        do {
            answer = try await client.send { [client] in
                client.request(
                    "POST", nil, query: [("delete", "")],
                    fields: ["Content-MD5": digest, "Content-Type": "application/xml"], body: .bytes(body),
                    repetition: .harmless, changing: deletions.map(\.key))
            }
        } catch let failure as S3Failure where failure.isUnimplemented || failure.status == 405 {
            state.withLock { $0.deletesMany = false }
            return nil
        }
        let document = try XMLReader.document(answer.body)
        var left: [String] = []
        for refusal in document.children where refusal.name.local == "Error" {
            let code = refusal.child("Code")?.trimmedText ?? ""
            if code == "NoSuchKey" { continue }
            let key = refusal.child("Key")?.text ?? ""
            if spelling != nil, ["PreconditionFailed", "ConditionalRequestConflict"].contains(code) {
                left.append(key)
                continue
            }
            throw FileProviderError(
                code == "AccessDenied" ? .fileReadNoPermission : .cannotSynchronize,
                "the server does not delete '\(key)' (\(code))")
        }
        return left
    }
}

extension Array {
    fileprivate func partitioned(_ isFirst: (Element) -> Bool) -> ([Element], [Element]) {
        (filter(isFirst), filter { !isFirst($0) })
    }
}
