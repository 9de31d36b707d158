import FileProvider
import FileProviderPaths
import HTTPTransport
import SystemPackage

/// Lists directories, part by part.
struct DirectoryListings: Sendable {
    let server: WebDAVServer
    let spoolDirectory: FilePath
    /// Shows the user a message.
    let report: @Sendable (String) -> Void
    private let listings = OpenListings()

    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        try await server.connect()
        let stream: ListingStream
        if let token {
            guard let known = listings.stream(token) else { throw FileProviderError(.pageExpired) }
            stream = known
        } else {
            stream = list(path)
        }
        do {
            let part = try await stream.next(limit, of: path.name ?? "/", on: server.client.host)
            var listing = RemoteListing(entries: [])
            for entry in part.entries {
                listing.entries.append(try await server.lostUploads.recognized(entry, at: path.appending(entry.name)))
            }
            listing.leavesOut = part.leavesOut
            if !part.isLast {
                listing.next = token.map(listings.advance) ?? listings.keep(stream)
                // The listing was ended in the meantime.
                guard listing.next != nil else { throw FileProviderError(.pageExpired) }
            } else if let token {
                listings.end(token)
            }
            return listing
        } catch {
            if let token { listings.end(token) }
            stream.cancel()
            throw error is CancellationError ? FileProviderError(.userCancelled) : error
        }
    }

    func end(_ token: [UInt8]) { listings.end(token) }

    func endAll() { listings.endAll() }

    private func list(_ path: RemotePath) -> ListingStream {
        let stream = ListingStream(in: spoolDirectory)
        let (client, what) = (server.client, path.name ?? "/")
        stream.start {
            try await client.propfind(
                client.root.url(of: path, isDirectory: true), depth: 1, server.properties, what: what, isMuch: true,
                take: { resource, head in
                    guard let place = client.root.path(of: resource.href, on: head.url) else {
                        stream.noteLeftOut()
                        return report(
                            "\(head.url.host) lists in '\(what)' what lies elsewhere: '\(resource.href.prefix(200))'")
                    }
                    if place == path {
                        if let refusal = WebDAVClient.refusal(of: resource, in: head, what) { throw refusal }
                        return stream.noteOwn(isDirectory: !resource.isMissing && resource.isCollection)
                    }
                    guard let name = place.name, place.parent == path else {
                        return report(
                            "\(head.url.host) lists in '\(what)' what is not in it: '\(resource.href.prefix(200))'")
                    }
                    if resource.isMissing { return }
                    guard resource.isDescribed else {
                        stream.noteLeftOut()
                        let status = resource.status ?? resource.statusOfProperties ?? 0
                        return report("\(head.url.host) does not show '\(name)' (\(status))")
                    }
                    try stream.add(server.found(resource, place, in: head).entry)
                },
                discard: stream.discard)
        }
        return stream
    }
}
