import FileProvider

/// What an XML answer consisted of, besides the children of its root that were handed over.
package struct XMLAnswer: Sendable {
    package var head: HTTPResponseHead
    package var root: XMLElement
}

extension HTTPTransport {
    /// Makes a request, and takes the XML of the answer apart as it arrives.
    ///
    /// - Parameters:
    ///   - isWanted: whether an answer is the XML that was asked for.
    ///   - isMuch: whether taking it may block, as for a disk: then it is done on a thread that may.
    ///   - take: given the children of the root, as they come. What it throws ends the request.
    ///   - failure: the error for any other answer.
    /// - Throws: `malformedResponse` for what is no XML, also when it ends early.
    package func sendForXML(
        _ request: HTTPRequest, limits: XMLLimits = XMLLimits(), isMuch: Bool = false,
        isWanted: @escaping @Sendable (HTTPResponseHead) -> Bool,
        take: @escaping @Sendable ([XMLElement]) throws -> Void,
        failure: @escaping @Sendable (HTTPResponse) -> any Error
    ) async throws -> XMLAnswer {
        try await send(request) { head, body in
            guard isWanted(head) else {
                throw failure(HTTPResponse(head: head, body: try await body.all(upTo: 64 << 10)))
            }
            var reader = XMLReader(limits: limits)
            while let chunk = try await body.next() {
                let elements = try reader.feed(chunk.bytes)
                if elements.isEmpty { continue }
                if isMuch {
                    try await body.locally { try take(elements) }
                } else {
                    try take(elements)
                }
            }
            return XMLAnswer(head: head, root: try reader.finish())
        }
    }
}
