import FileProvider
import NIOCore

/// An XML response without the children of its root, which were passed on as they arrived.
package struct XMLAnswer: Sendable {
    package var head: HTTPResponseHead
    package var root: XMLElement
}

extension HTTPTransport {
    /// Makes a request and parses the XML of the response as it arrives.
    ///
    /// - Parameters:
    ///   - isWanted: whether a response is the requested XML.
    ///   - isMuch: `take` may block, for example for a disk, and runs on a thread of its own.
    ///   - take: called with children of the root as they arrive. An error of it ends the request.
    ///   - failure: the error for any other response.
    /// - Throws: `malformedResponse` for invalid XML, also for a document that ends early.
    package func sendForXML(
        _ request: HTTPRequest, limits: XMLLimits = XMLLimits(), isMuch: Bool = false,
        isWanted: @escaping @Sendable (HTTPResponseHead) -> Bool,
        take: @escaping @Sendable ([XMLElement]) throws -> Void,
        failure: @escaping @Sendable (HTTPResponse) -> any Error
    ) async throws -> XMLAnswer {
        try await exchange(request) { head, body in
            guard isWanted(head) else {
                throw failure(HTTPResponse(head: head, body: try await body.all(upTo: 64 << 10)))
            }
            var reader = XMLReader(limits: limits)
            while let piece = try await body.next() {
                let elements = try reader.feed(piece.readableBytesView)
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
