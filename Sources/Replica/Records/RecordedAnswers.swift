import FileProvider
import Synchronization

/// Of which items the provider's answers to changes were recorded lately, and in which order: what was asked for before an
/// answer was recorded may be older than that, and does not undo it.
///
/// It is noted within the transaction that records an answer, and asked within that which takes in news: of two
/// transactions the later one always knows.
package final class RecordedAnswers: Sendable {
    /// Between two answers.
    package struct Moment: Hashable, Sendable {
        fileprivate var number: UInt64
    }

    private struct State {
        var number: UInt64 = 0
        var answers: [ItemIdentifier: UInt64] = [:]
        /// Answers up to this one were dropped.
        var forgotten: UInt64 = 0
    }

    private let state = Mutex(State())
    private static let most = 1 << 15

    init() {}

    /// The present moment: to be taken before the provider is asked.
    package var now: Moment { state.withLock { Moment(number: $0.number) } }

    /// Whether an answer of an item was recorded after a moment, or may have been, so long ago is that.
    package func isNewer(_ identifier: ItemIdentifier, than moment: Moment) -> Bool {
        state.withLock { state in
            state.answers[identifier].map { $0 > moment.number } ?? (state.forgotten > moment.number)
        }
    }

    /// An answer of an item is being recorded, or was, or something was done that it has not told of.
    package func note(_ identifier: ItemIdentifier) {
        state.withLock { state in
            state.number += 1
            state.answers[identifier] = state.number
            guard state.answers.count > Self.most else { return }
            let oldest = state.number - UInt64(Self.most / 2)
            state.answers = state.answers.filter { $0.value > oldest }
            state.forgotten = oldest
        }
    }
}
