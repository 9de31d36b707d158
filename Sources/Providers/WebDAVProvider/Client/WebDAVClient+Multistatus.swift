import FileProvider
import HTTPTransport

extension WebDAVClient {
    /// The status of a change that is refused inside a multistatus. Apache answers so when a collection above is locked by
    /// another client (RFC 4918, 9.6.1 and 9.7.1).
    ///
    /// - Returns: nil for any other response. What a MOVE, COPY or DELETE of a collection has done in part is the caller's to
    ///   judge, unless something is locked: no further part is tried then.
    static func statusInside(_ response: HTTPResponse, to method: String) -> Int? {
        guard response.status == 207, ["PUT", "MKCOL", "MOVE", "COPY", "DELETE"].contains(method),
            let root = try? XMLReader.document(response.body), root.name.isCalled("multistatus", in: "DAV:")
        else { return nil }
        let refusals = root.children.compactMap { DAVResource($0)?.status }.filter { $0 >= 400 }
        if refusals.contains(423) { return 423 }
        guard method == "PUT" || method == "MKCOL" else { return nil }
        // 424 says that another one of them is the reason.
        return refusals.first { $0 != 424 } ?? refusals.first
    }

    /// The error that a resource means which a multistatus names and does not describe; nil for any other, also for a missing one.
    static func refusal(
        of resource: DAVResource, in head: HTTPResponseHead, _ what: String
    ) -> FileProviderError? {
        guard !resource.isDescribed, !resource.isMissing, let status = resource.status ?? resource.statusOfProperties
        else { return nil }
        var inner = head
        inner.status = status
        return failure(inner, of: what)
    }

    /// The error of a request that the server redirects to another one; nil for any other error. Of the root it says what the source
    /// would be there.
    func redirect(in error: FileProviderError, from url: HTTPURL) -> FileProviderError? {
        let redirects = error.underlyingErrors.compactMap { $0 as? RedirectToAnotherServer }
        guard let target = redirects.first?.target else { return nil }
        guard url == root.url else { return error }
        let source = "\(target.isSecure ? "webdavs" : "webdav")://\(target.authority)\(target.path.prefix(200))"
        return FileProviderError(
            .malformedResponse,
            "\(host) redirects to another server, which is not followed: mount '\(source)' if that is the right one; or is "
                + "it a page to log in?")
    }
}
