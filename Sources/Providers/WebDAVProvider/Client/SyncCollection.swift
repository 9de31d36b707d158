import FileProviderPaths
import HTTPTransport
import Synchronization

/// One sync-collection report (RFC 6578): what has changed in a collection since a token.
struct SyncCollection: Sendable {
    enum Level: String, Sendable {
        case members = "1"
        case all = "infinite"
    }

    enum Answer: Sendable {
        case report(Part)
        /// The token is invalid, or no longer valid.
        case refused
        /// The server does not report at this level, or at all.
        case notReported
    }

    /// A report, or a part of one.
    struct Part: Sendable {
        var changes = RemoteChanges()
        var token: String?
        /// The report continues from the token.
        var isTruncated = false
        /// The server does not report below the collection.
        var isRefusedLevel = false
        /// A response in it is invalid, or it has more changes than are kept in memory. No change is told then.
        var isUnclear = false
        /// What the changes take in memory, about.
        private var bytes = 0

        static let mostBytes = 256 << 20
        /// Of a path besides its text.
        private static let ownBytes = 200

        /// Counts a change with the text of its path.
        mutating func count(_ text: String) { count(text.utf8.count + Self.ownBytes) }

        private mutating func count(_ more: Int) {
            bytes += more
            if bytes > Self.mostBytes { isUnclear = true }
            if isUnclear { (changes, bytes) = (RemoteChanges(), 0) }
        }

        /// Adds what follows.
        mutating func append(_ next: Part) {
            changes.present.formUnion(next.changes.present)
            changes.removed.formUnion(next.changes.removed)
            changes.untold.formUnion(next.changes.untold)
            (token, isUnclear) = (next.token, isUnclear || next.isUnclear)
            count(next.bytes)
        }
    }

    let client: WebDAVClient
    let path: RemotePath
    let level: Level
    let token: String

    private var body: [UInt8] {
        Array(
            (#"<?xml version="1.0" encoding="utf-8"?><D:sync-collection xmlns:D="DAV:"><D:sync-token>"#
                + token.escapedForXML + "</D:sync-token><D:sync-level>\(level.rawValue)</D:sync-level>"
                + "<D:prop><D:getetag/></D:prop></D:sync-collection>").utf8)
    }

    /// - Throws: `noSuchItem`; `malformedResponse` also for a report that ends early.
    func send() async throws -> Answer {
        let part = Mutex(Part())
        do {
            let answer = try await client.multistatus(
                "REPORT", client.root.url(of: path, isDirectory: true), depth: 0, body,
                take: { element, head in part.withLock { take(element, at: head, into: &$0) } },
                discard: {
                    part.withLock { $0 = Part() }
                    return true
                },
                failure: { Refusal(response: $0) })
            guard answer.root.name.isCalled("multistatus", in: "DAV:") else { return .notReported }
        } catch let refusal as Refusal {
            return try Self.meaning(of: refusal.response, what: path.name ?? "/")
        }
        let found = part.withLock { $0 }
        if found.isRefusedLevel { return .notReported }
        return .report(found)
    }

    /// The present token of a collection; nil where it has none.
    static func token(of path: RemotePath, by client: WebDAVClient) async throws -> String? {
        try await client.resource(
            at: client.root.url(of: path, isDirectory: true), .syncToken, what: path.name ?? "/"
        ).resource.syncToken
    }

    private struct Refusal: Error {
        var response: HTTPResponse
    }

    private static func meaning(of response: HTTPResponse, what: String) throws -> Answer {
        if String(decoding: response.body, as: UTF8.self).contains("valid-sync-token") { return .refused }
        switch response.status {
        case 404: throw WebDAVClient.failure(response, of: what)
        // Some servers refuse a token without a reason; a report that is too large is treated as an old token.
        case 409, 410, 412, 507: return .refused
        case 400, 403, 405, 415, 422, 501: return .notReported
        default: throw WebDAVClient.failure(response, of: what)
        }
    }

    private func take(_ element: XMLElement, at head: HTTPResponseHead, into part: inout Part) {
        if element.name.isCalled("sync-token", in: "DAV:") {
            part.token = DAVResource.token(element.trimmedText)
            return
        }
        guard let resource = DAVResource(element) else { return }
        guard let place = client.root.path(of: resource.href, on: head.url), place == path || place.isBelow(path) else {
            part.isUnclear = true
            return
        }
        defer { part.count(resource.href) }
        switch resource.status {
        case 507 where place == path: part.isTruncated = true
        case 403 where element.child("DAV:", "error")?.child("DAV:", "sync-traversal-supported") != nil:
            if place == path { part.isRefusedLevel = true } else { part.changes.untold.insert(place) }
        // The collection itself is gone, which its listing will show.
        case 404 where place == path, 410 where place == path: part.isUnclear = true
        case 404, 410: part.changes.removed.insert(place)
        case let status:
            if !(200..<300).contains(status ?? 200) {
                part.isUnclear = true
            } else if place != path {
                part.changes.present.insert(place)
            }
        }
    }
}
