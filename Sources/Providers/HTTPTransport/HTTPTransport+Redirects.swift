import FileProvider
import NIOCore

/// A redirect to another server that is not followed: the cause of a `malformedResponse`.
package struct RedirectToAnotherServer: Error {
    package var target: HTTPURL
}

extension HTTPTransport {
    /// The target of a redirect; nil for a response that is none, or one that the caller handles.
    func redirect(_ request: HTTPRequest, _ head: HTTPResponseHead, soFar: Int) throws -> HTTPURL? {
        guard [301, 302, 303, 307, 308].contains(head.status), let location = head.fields["Location"] else {
            return nil
        }
        let isReading = request.method == "GET" || request.method == "HEAD"
        // 303 refers to another resource than the one to be changed.
        guard head.status != 303 || isReading else { return nil }
        let host = request.url.host
        guard let target = request.url.resolving(location) else {
            throw Self.refusal(host, "to what is no address")
        }
        guard soFar < configuration.redirects else { throw Self.refusal(host, "in circles") }
        if request.url.isSecure, !target.isSecure {
            throw Self.refusal(host, "from a safe connection to an unsafe one (\(target.authority))")
        }
        guard isReading || Self.mayHaveCredentials(target, of: request.url) else {
            let server = "another server (\(target.scheme)://\(target.authority))"
            throw Self.refusal(
                host, "to \(server)", advice: ": name that one as the source",
                causes: [RedirectToAnotherServer(target: target)])
        }
        guard HTTPRequest.isSafe(request.method) || target.hasSamePlace(as: request.url) else {
            throw Self.refusal(host, "\(request.method) to another place ('\(target.path.prefix(200))')")
        }
        return target
    }

    private static func refusal(
        _ host: String, _ how: String, advice: String = "", causes: [any Error] = []
    ) -> TransportFailure {
        let words = "\(host) redirects \(how), which is not followed\(advice)"
        return TransportFailure(
            FileProviderError(.malformedResponse, words, underlyingErrors: causes), isBroken: false)
    }

    /// Whether the credentials for one URL may be sent to another: to the same server, over a connection at least as secure.
    static func mayHaveCredentials(_ url: HTTPURL, of origin: HTTPURL) -> Bool {
        url.hasSameOrigin(as: origin)
            || url.host == origin.host && url.isSecure && !origin.isSecure && url.port == 443 && origin.port == 80
    }

    /// The request after a redirect. Another server receives no header but `Range`.
    static func redirected(_ request: HTTPRequest, to url: HTTPURL) throws -> HTTPRequest {
        var next = request
        next.url = url
        guard !mayHaveCredentials(url, of: request.url) else { return next }
        next.fields = [:]
        next.fields["Range"] = request.fields["Range"]
        next.authorizer = nil
        return next
    }
}

extension HTTPBodyReader {
    /// Reads the rest of a small body, so that the connection can be used again.
    func drain() async {
        var left = 64 << 10
        while left > 0, let piece = try? await next() { left -= piece.readableBytes }
    }
}
