import FileProvider
import HTTPTransport
import PathAddressing

extension WebDAVRemote {
    /// Sends a large file in chunks, where the server takes such.
    ///
    /// - Returns: false when it takes none, or the file is not large: then nothing was done.
    /// - Throws: as ``write(_:to:attributes:if:)``.
    func writeInChunks(
        _ contents: ContentSource, to path: RemotePath, _ attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> Bool {
        guard contents.size >= ChunkedUploads.smallest, let place = UploadPlace(of: client.base) else { return false }
        let name = path.name ?? "/"
        var fields: HTTPFields = ["Overwrite": condition == .absent ? "F" : "T"]
        if let date = attributes.contentModificationDate { fields["X-OC-Mtime"] = String(date.seconds) }
        let job = ChunkedUploads.Job(place: place, target: client.url(of: path), name: name, fields: fields)
        let response = try await chunkedUploads.send(contents, job, by: client) {
            // An hour may have passed since it was begun.
            switch condition {
            case .always, .empty: break
            case .absent: try await requireAbsence(path)
            case .unchanged(let tag):
                let there = try await sight(of: path)
                guard let there, there.entry.tag == tag else { throw RemoteConditionFailure(present: there?.entry) }
            }
        }
        guard let response else { return false }
        if response.head.isSuccess { return true }
        if response.status == 412 { throw RemoteConditionFailure(present: try await sight(of: path)?.entry) }
        if [404, 409].contains(response.status), try await sight(of: path.parent, isDirectory: true) == nil {
            throw FileProviderError(.noSuchItem, "\(client.base.host) has no directory for '\(name)'")
        }
        if [400, 404, 409].contains(response.status) {
            throw FileProviderError(
                .providerDomainTemporarilyUnavailable,
                "\(client.base.host) has lost a part of '\(name)' (\(response.status)): it is sent anew")
        }
        throw WebDAVClient.failure(response, of: name, isChange: true)
    }
}
