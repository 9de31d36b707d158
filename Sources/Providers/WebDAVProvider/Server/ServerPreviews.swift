import FileProvider
import FileProviderPaths
import HTTPTransport

/// The previews that Nextcloud and ownCloud make of pictures and documents.
///
/// Source: the interfaces of `core/preview.png` (Nextcloud) and of GET with `preview=1` (ownCloud's WebDAV service).
struct ServerPreviews: Sendable {
    let server: WebDAVServer

    /// Whether the server makes previews, as far as is known now.
    var areMade: Bool {
        (server.hasIdentifiers || !server.isConnected) && OwnCloudAccount(of: server.client.root.url) != nil
    }

    /// - Returns: nil where the server has no preview of a file.
    func preview(of path: RemotePath, size: ThumbnailSize) async throws -> [UInt8]? {
        try await server.connect()
        guard server.hasIdentifiers, let account = OwnCloudAccount(of: server.client.root.url) else { return nil }
        let length = "x=\(size.width)&y=\(size.height)"
        var url = server.client.root.url(of: path)
        if server.trash.store.kind != .ownCloud, let page = account.page("core/preview.png") {
            let file = "/" + (account.mounted.names + path.names).joined(separator: "/")
            url = page
            url.query = "file=\(PercentEncoding.encode(file))&\(length)&a=1&forceIcon=0"
        } else {
            url.query = "preview=1&\(length)&a=1&forceIcon=0&scalingup=0"
        }
        // A page that wants a session may redirect to its login without this field.
        let response = try await server.client.send("GET", url, ["OCS-APIRequest": "true", "Accept": "image/*"])
        switch response.status {
        case 200 where response.head.fields["Content-Type"]?.hasPrefix("image/") == true: return response.body
        case 200, 204, 400, 403, 404, 410, 415, 501: return nil
        default: throw WebDAVClient.failure(response, of: path.name ?? "/")
        }
    }
}
