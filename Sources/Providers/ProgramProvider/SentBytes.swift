import FileProvider
import Synchronization

/// Reports how much of some content another program has sent, by the numbers that it gives. They may be wrong, and a number may be
/// smaller than the one before: what the program sends again it counts again.
package final class SentBytes: Sendable {
    private let contents: ContentSource
    private let reported = Mutex<Int64>(0)

    package init(of contents: ContentSource) { self.contents = contents }

    /// Reports what is new of the `count` bytes that were sent so far.
    package func note(_ count: Int64) {
        let new = reported.withLock { reported in
            let before = reported
            reported = max(before, min(count, contents.size))
            return reported - before
        }
        if new > 0 { contents.advance(by: new) }
    }

    /// Reports the rest: the program has sent all.
    package func noteAll() { note(contents.size) }
}
