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
    ///   - discard: called when the response breaks or the document ends early, before the request is repeated. Forgets what
    ///     was taken; false if that is too late, and then the request is not repeated.
    ///   - failure: the error for any other response, of which it gets the beginning of the body.
    /// - Throws: `malformedResponse` for invalid XML, also for a document that ends early each time.
    package func sendForXML(
        _ request: HTTPRequest, limits: XMLLimits = XMLLimits(), isMuch: Bool = false,
        isWanted: @escaping @Sendable (HTTPResponseHead) -> Bool,
        take: @escaping @Sendable ([XMLElement]) throws -> Void,
        discard: @escaping @Sendable () -> Bool = { false },
        failure: @escaping @Sendable (HTTPResponse) -> any Error
    ) async throws -> XMLAnswer {
        try await exchange(request, mayReceiveAgain: discard) { head, body in
            guard isWanted(head) else {
                throw failure(HTTPResponse(head: head, body: try await body.beginning(upTo: 64 << 10)))
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
            do {
                return XMLAnswer(head: head, root: try reader.finish())
            } catch let error as FileProviderError {
                // Servers written in Go end a listing early, and correctly as HTTP has it, when a file goes meanwhile.
                throw TransportFailure(error, isBroken: true)
            }
        }
    }
}
