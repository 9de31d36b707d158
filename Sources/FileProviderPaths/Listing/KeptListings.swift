import Synchronization

/// What is left of listings that are given part by part, by the tokens of their next parts.
package final class KeptListings<Rest: Sendable>: Sendable {
    private let state = Mutex<(last: UInt64, open: [UInt64: Rest])>((0, [:]))
    private static var most: Int { 64 }

    package init() {}

    /// Takes the rest that a token stands for out; nil if it is not kept any more.
    package func take(_ token: [UInt8]) -> Rest? {
        guard let number = UInt64(String(decoding: token, as: UTF8.self)) else { return nil }
        return state.withLock { $0.open.removeValue(forKey: number) }
    }

    /// - Returns: a token for a rest, and the oldest rest where there are so many that it is not kept any more.
    package func keep(_ rest: Rest) -> (token: [UInt8], oldest: Rest?) {
        state.withLock { state in
            state.last += 1
            state.open[state.last] = rest
            let oldest = state.open.count > Self.most ? state.open.keys.min() : nil
            return (Array(String(state.last).utf8), oldest.flatMap { state.open.removeValue(forKey: $0) })
        }
    }
}
