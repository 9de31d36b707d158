import FileProvider
import HTTPTransport

/// The answer to a move of a capability probe that moves no file. Without moves nothing can be written, so it ends the probe.
struct ProbeMoveFailure: Error {
    let error: FileProviderError

    /// - Parameter what: the directory of the probe, for messages.
    init(_ response: HTTPResponse, in what: String) {
        let (host, status) = (response.head.url.host, response.status)
        let advice = "if a proxy is in front of it, that one must rewrite the Destination header"
        switch status {
        case _ where status == 400 || status == 502 && Self.namesDestination(response):
            error = FileProviderError(.cannotSynchronize, "\(host) refuses to move files (\(status)): \(advice)")
        case 502:
            error = FileProviderError(
                .providerDomainTemporarilyUnavailable,
                "\(host) has not moved a file (502). Where this does not end: \(advice)")
        case _ where Self.isPassing(response) || [423, 500].contains(status):
            let failure = WebDAVClient.failure(response, of: what, isChange: true)
            // The server is reached: it answers everything else.
            error =
                failure.code == .serverUnreachable
                ? FileProviderError(.providerDomainTemporarilyUnavailable, failure.message) : failure
        default:
            error = FileProviderError(.cannotSynchronize, "\(host) refuses to move files (\(status))")
        }
    }

    /// As Apache does: "Destination URI refers to different scheme or port".
    private static func namesDestination(_ response: HTTPResponse) -> Bool {
        response.text.contains("Destination URI")
    }

    /// Whether an answer says nothing about what the server can do: another attempt may succeed.
    static func isPassing(_ response: HTTPResponse) -> Bool {
        [408, 425, 429, 502, 503, 504].contains(response.status) || (520...599).contains(response.status)
    }
}
