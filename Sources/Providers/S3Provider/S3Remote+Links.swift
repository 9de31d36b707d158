import FileProvider
import Foundation
import HTTPTransport
import PathAddressing
import Synchronization

/// Symbolic links: objects whose key says what they are, so that a listing shows it.
extension S3Remote {
    /// Entries with links in place of the objects that are links.
    func withLinks(_ entries: [RemoteEntry], in path: RemotePath) async throws -> [RemoteEntry] {
        guard entries.contains(where: { $0.kind == .file && LinkNames.isOne($0.name) }) else { return entries }
        let names = Set(entries.map { Array($0.name.utf8) })
        var shown: [RemoteEntry] = []
        for entry in entries {
            let name = String(entry.name.dropLast(LinkNames.suffix.count))
            guard entry.kind == .file, LinkNames.isOne(entry.name), !names.contains(Array(name.utf8)),
                let size = entry.size, (1...Int64(LinkNames.longestTarget)).contains(size)
            else {
                shown.append(entry)
                continue
            }
            let key = key(of: path.appending(entry.name))
            let object = S3Object(
                key: key, tag: tag(of: entry.tag, at: key), size: size,
                modified: entry.attributes.contentModificationDate)
            if let link = try await symbolicLink(object, name: name) { shown.append(link) }
        }
        return shown
    }

    /// The link that an object is.
    ///
    /// - Returns: nil when it is gone by now, or cannot be one.
    func symbolicLink(_ object: S3Object, name: String) async throws -> RemoteEntry? {
        guard (1...Int64(LinkNames.longestTarget)).contains(object.size) else { return nil }
        let target: String
        if let known = links.target(of: object) {
            target = known
        } else {
            do {
                let key = object.key
                let answer = try await client.send { [client] in client.request("GET", key) }
                target = String(decoding: answer.body, as: UTF8.self)
                links.note(target, of: object)
            } catch let failure as S3Failure where failure.status == 404 {
                return nil
            }
        }
        return RemoteEntry(
            name: name, kind: .symbolicLink, tag: Array(object.tag.utf8), isTagStrong: true,
            attributes: RemoteAttributes(contentModificationDate: date(of: object), symbolicLinkTarget: target))
    }

    func makeSymbolicLink(
        at path: RemotePath, to target: String, attributes: RemoteAttributes
    ) async throws -> RemoteEntry {
        try await ready()
        try check(path)
        guard target.utf8.count <= LinkNames.longestTarget else {
            throw FileProviderError(.cannotSynchronize, "the link's target is too long")
        }
        return try await changingOne(path, isTree: false) { [self] in
            try await requireDirectory(path.parent)
            if let there = try await present(at: path) { throw RemoteConditionFailure(present: there) }
            let key = key(of: path) + LinkNames.suffix
            _ = try await client.send { [client] in
                client.request("PUT", key, fields: ObjectMetadata.fields(attributes), body: .bytes(Array(target.utf8)))
            }
            if let date = attributes.contentModificationDate, let made = try await listed(key) {
                dates.note([(key, made.tag, date)])
            }
            guard let entry = try await present(at: path) else { throw Self.missing(path) }
            return entry
        }
    }
}

/// The targets of links that were read, by what they were read from. A few: what is not here is read again.
final class LinkTargets: Sendable {
    private let targets = Mutex<[KeyBytes: (tag: String, target: String)]>([:])

    func target(of object: S3Object) -> String? {
        targets.withLock { $0[KeyBytes(object.key)].flatMap { $0.tag == object.tag ? $0.target : nil } }
    }

    func note(_ target: String, of object: S3Object) {
        targets.withLock { targets in
            if targets.count > 1000 { targets.removeAll() }
            targets[KeyBytes(object.key)] = (object.tag, target)
        }
    }
}
