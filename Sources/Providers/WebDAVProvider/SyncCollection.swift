import FileProvider
import HTTPTransport
import PathAddressing
import Synchronization

/// One question of RFC 6578: what has changed in a collection since a token?
struct SyncCollection: Sendable {
    /// How deep a report goes.
    enum Level: String, Sendable {
        case members = "1"
        case all = "infinite"
    }

    /// What a server answers.
    enum Answer: Sendable {
        case report(Part)
        /// The token is not, or no more, one of its own.
        case refused
        /// It does not report at this level, or at all.
        case notReported
    }

    /// A report, or a part of one.
    struct Part: Sendable {
        var changes = RemoteChanges()
        var token: String?
        /// There is more from the token on.
        var isTruncated = false
        /// The server says that it does not look below the collection.
        var isRefusedLevel = false
        /// Something in it cannot be understood.
        var isUnclear = false
    }

    let client: WebDAVClient
    let path: RemotePath
    let level: Level
    let token: String

    private var body: [UInt8] {
        let escaped = token.reduce(into: "") { text, character in
            switch character {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            default: text.append(character)
            }
        }
        return Array(
            (#"<?xml version="1.0" encoding="utf-8"?><D:sync-collection xmlns:D="DAV:"><D:sync-token>"# + escaped
                + "</D:sync-token><D:sync-level>\(level.rawValue)</D:sync-level>"
                + "<D:prop><D:getetag/></D:prop></D:sync-collection>").utf8)
    }

    /// - Throws: `noSuchItem`; `malformedResponse` also for a report that ends early.
    func ask() async throws -> Answer {
        let part = Mutex(Part())
        do {
            let answer = try await client.multistatus(
                HTTPRequest(
                    "REPORT", client.url(of: path, isDirectory: true),
                    fields: ["Depth": "0", "Content-Type": "application/xml; charset=utf-8", "Accept": "*/*"],
                    body: .bytes(body)),
                take: { element, head in
                    part.withLock { take(element, at: head, into: &$0) }
                },
                failure: { response in Refusal(response: response) })
            guard answer.root.name.isCalled("multistatus", in: "DAV:") else { return .notReported }
        } catch let refusal as Refusal {
            return try Self.meaning(of: refusal.response, what: path.name ?? "/")
        }
        let found = part.withLock { $0 }
        if found.isRefusedLevel { return .notReported }
        return .report(found)
    }

    private struct Refusal: Error {
        var response: HTTPResponse
    }

    private static func meaning(of response: HTTPResponse, what: String) throws -> Answer {
        if String(decoding: response.body, as: UTF8.self).contains("valid-sync-token") { return .refused }
        switch response.status {
        case 404: throw WebDAVClient.failure(response, of: what)
        // Some refuse a token without saying why; too much at once is as good as an old token.
        case 409, 410, 412, 507: return .refused
        case 400, 403, 405, 415, 422, 501: return .notReported
        default: throw WebDAVClient.failure(response, of: what)
        }
    }

    private func take(_ element: XMLElement, at head: HTTPResponseHead, into part: inout Part) {
        if element.name.isCalled("sync-token", in: "DAV:") {
            part.token = element.trimmedText
            return
        }
        guard let resource = DAVResource(element) else { return }
        guard let place = client.path(of: resource.href, on: head.url), place == path || place.isBelow(path) else {
            // What it means to say nobody knows.
            part.isUnclear = true
            return
        }
        switch resource.status {
        case 507 where place == path: part.isTruncated = true
        case 403 where element.child("DAV:", "error")?.child("DAV:", "sync-traversal-supported") != nil:
            if place == path { part.isRefusedLevel = true } else { part.changes.untold.insert(place) }
        // The collection itself is gone: whoever lists it will see.
        case 404 where place == path, 410 where place == path: part.isUnclear = true
        case 404, 410: part.changes.removed.insert(place)
        case let status:
            guard (200..<300).contains(status ?? 200) else {
                part.isUnclear = true
                return
            }
            // Of the collection itself nothing is asked.
            if place != path { part.changes.present.insert(place) }
        }
    }
}
