/// Finds out whether a sequence of tokens, each of which leads to the next, has come to a cycle, of whatever length. It keeps
/// one token and no more (Brent's algorithm): a token is remembered for twice as many steps as the one before it.
package struct CycleCheck<Token: Equatable> {
    private var remembered: Token?
    private var steps = 0
    private var reach = 1

    /// - Parameter start: the token that the sequence begins with; nil where the beginning has none.
    package init(from start: Token? = nil) {
        remembered = start
    }

    /// Whether this token, the next of the sequence, was one of it before. A cycle is found before it has been gone through
    /// three times.
    package mutating func closes(with token: Token) -> Bool {
        if token == remembered { return true }
        steps += 1
        if steps == reach { (remembered, steps, reach) = (token, 0, reach * 2) }
        return false
    }
}

extension CycleCheck: Sendable where Token: Sendable {}

extension CycleCheck {
    /// Notes where a listing goes on.
    ///
    /// - Throws: `malformedResponse` when it has been there before.
    package mutating func check(_ next: Token?, of what: String) throws(FileProviderError) {
        guard let next, closes(with: next) else { return }
        throw FileProviderError(.malformedResponse, "the listing of \(what) goes on where it has been before")
    }
}
