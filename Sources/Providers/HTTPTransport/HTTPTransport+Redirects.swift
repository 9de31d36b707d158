import FileProvider

extension HTTPTransport {
    /// Where an answer sends a request; nil when it does not, or when that is the caller's affair.
    func redirect(_ request: HTTPRequest, _ head: HTTPResponseHead, soFar: Int) throws -> HTTPURL? {
        guard [301, 302, 303, 307, 308].contains(head.status), let location = head.fields["Location"] else {
            return nil
        }
        let isReading = request.method == "GET" || request.method == "HEAD"
        // 303 says that the answer is elsewhere, not the thing that was to be changed.
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
            throw Self.refusal(host, "to another server (\(target.authority)): name that one as the source")
        }
        return target
    }

    private static func refusal(_ host: String, _ how: String) -> TransportFailure {
        TransportFailure(
            FileProviderError(.malformedResponse, "\(host) redirects \(how), which is not followed"), isBroken: false)
    }

    /// Whether what is meant for one address may be sent to another: to the same server, reached at least as safely.
    static func mayHaveCredentials(_ url: HTTPURL, of origin: HTTPURL) -> Bool {
        url.hasSameOrigin(as: origin)
            || url.host == origin.host && url.isSecure && !origin.isSecure && url.port == 443 && origin.port == 80
    }

    /// The request for where it was sent. Another server gets to see nothing but which bytes are wanted.
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
    /// Reads what is left, when it is little, so that the connection can be used again.
    func drain() async {
        var left = 64 << 10
        while left > 0, let chunk = try? await next() { left -= chunk.count }
    }
}
