/// Detects a cycle in a sequence of tokens with constant memory (Brent's algorithm): a token is remembered for twice
/// as many steps as the previous one.
package struct CycleCheck<Token: Equatable> {
    private var remembered: Token?
    private var steps = 0
    private var reach = 1
    private var emptyParts = 0

    /// - Parameter start: the first token; nil if the sequence starts without one.
    package init(from start: Token? = nil) {
        remembered = start
    }

    /// Whether the next token has occurred before. A cycle is detected within three rounds.
    package mutating func closes(with token: Token) -> Bool {
        if token == remembered { return true }
        steps += 1
        if steps == reach { (remembered, steps, reach) = (token, 0, reach * 2) }
        return false
    }
}

extension CycleCheck: Sendable where Token: Sendable {}

extension CycleCheck {
    /// The most parts of a listing one after the other that list nothing.
    private static var mostEmptyParts: Int { 1000 }

    /// Checks the next token of a listing.
    ///
    /// - Parameter isEmpty: whether the part before it lists nothing.
    /// - Throws: `malformedResponse` if the token has occurred before, or too many parts list nothing.
    package mutating func check(_ next: Token?, isEmpty: Bool, of what: String) throws(FileProviderError) {
        guard let next else { return }
        if closes(with: next) { throw FileProviderError(.malformedResponse, "the listing of \(what) repeats a token") }
        emptyParts = isEmpty ? emptyParts + 1 : 0
        if emptyParts > Self.mostEmptyParts {
            throw FileProviderError(.malformedResponse, "the listing of \(what) does not end")
        }
    }
}
