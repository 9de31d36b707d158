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
        try await translating { [self] in
            for record in moves.idle(over: key(of: path)) where MoveJournal.holds(key(of: path), record.from) {
                try await takeBack(record)
            }
            try await settleMoves(over: path)
            try await settleStragglers(
                over: [
                    kind == .directory ? .below(prefix(of: path)) : .exactly(key(of: path)),
                    .exactly(key(of: path) + LinkNames.suffix),
                ])
            switch kind {
            case .directory:
                try await keepDirectory(path.parent, without: path)
                try await deleteTree(prefix(of: path))
            case .file, .symbolicLink:
                let key = kind == .file ? key(of: path) : key(of: path) + LinkNames.suffix
                let there = try await object(key)
                if case .unchanged(let tag) = condition, let there, Array(there.tag.utf8) != tag {
                    throw RemoteConditionFailure(present: try await present(at: path))
                }
                guard there != nil else { return }
                try await keepDirectory(path.parent, without: path)
                try await delete([key])
            }
        }
    }

    /// Deletes all keys with a prefix, those of deeper places first within each thousand; the directory's own object goes
    /// in the end, so that what is broken off is still a directory.
    private func deleteTree(_ prefix: String) async throws {
        var token: String?
        repeat {
            let listing = try await client.list(prefix: prefix, isFlat: true, from: token)
            let keys = listing.entries.map(\.key).filter { !$0.utf8.elementsEqual(prefix.utf8) }
            try await delete(keys)
            token = listing.next
        } while token != nil
        try await delete([prefix])
        forget(prefix)
    }

    /// Deletes objects. Those that are gone already are no mistake.
    func delete(_ keys: [String]) async throws {
        guard !keys.isEmpty else { return }
        defer { dates.remove(keys) }
        // A character that XML cannot hold would spoil the whole request.
        let (plain, strange) = keys.partitioned {
            $0.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0xFFFE }
        }
        var single = strange
        if plain.count < 3 || !state.withLock({ $0.deletesMany }) {
            single += plain
        } else {
            for start in stride(from: 0, to: plain.count, by: 1000) {
                let some = Array(plain[start..<min(start + 1000, plain.count)])
                if try await !deleteTogether(some) { single += some }
            }
        }
        try await inParallel(single) { [client] key in
            do {
                _ = try await client.send { client.request("DELETE", key) }
            } catch let failure as S3Failure where failure.status == 404 && failure.code != "NoSuchBucket" {
                return
            }
        }
    }

    /// - Returns: false when the server does not know this request.
    private func deleteTogether(_ keys: [String]) async throws -> Bool {
        let listed = keys.map { key in
            let text = key.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            return "<Object><Key>\(text)</Key></Object>"
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
                    repetition: .harmless, changing: keys)
            }
        } catch let failure as S3Failure where failure.isUnimplemented || failure.status == 405 {
            state.withLock { $0.deletesMany = false }
            return false
        }
        let document = try XMLReader.document(answer.body)
        for refusal in document.children where refusal.name.local == "Error" {
            let code = refusal.child("Code")?.trimmedText ?? ""
            if code == "NoSuchKey" { continue }
            let key = refusal.child("Key")?.text ?? ""
            throw FileProviderError(
                code == "AccessDenied" ? .fileReadNoPermission : .cannotSynchronize,
                "the server does not delete '\(key)' (\(code))")
        }
        return true
    }
}

extension Array {
    fileprivate func partitioned(_ isFirst: (Element) -> Bool) -> ([Element], [Element]) {
        (filter(isFirst), filter { !isFirst($0) })
    }
}
