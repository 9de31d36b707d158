import FileProvider
import Synchronization

/// Decides which copies of files are long requests: ``HTTPRequest/isLong``. A move may be a copy, too: servers that keep files in an
/// object store copy on MOVE. Where a load balancer loses the answer, the call fails only after the timeout, so that of a small file is
/// the ordinary one.
package final class LongCopies: Sendable {
    /// The largest file, in bytes, whose copy is no long request. At the usual ``HTTPTransport/Configuration/storageRate`` it takes 13
    /// seconds, less than half of ``HTTPTransport/Configuration/stallTimeout``.
    package static let largestShort: Int64 = 64 << 20
    private static let most = 256

    private struct State {
        /// The targets of the copies that have ended with a timeout. The next attempt is long: on a slow server none would succeed
        /// otherwise.
        var timedOut: Set<HTTPURL> = []
        /// The smallest file whose copy has taken longer than an ordinary request may; nil for none. Copies of files of its size are long
        /// from the first attempt on, until one is faster.
        var slowSize: Int64?

        mutating func note(_ size: Int64, isSlow: Bool) {
            if isSlow {
                slowSize = min(size, slowSize ?? size)
            } else if let known = slowSize, known <= size {
                slowSize = nil
            }
        }
    }

    /// How long an ordinary request may take.
    private let ordinaryTime: Duration
    private let state = Mutex(State())

    /// - Parameter ordinaryTime: ``HTTPTransport/Configuration/stallTimeout``.
    init(ordinaryTime: Duration) { self.ordinaryTime = ordinaryTime }

    /// Makes a request that copies or moves an item.
    ///
    /// - Parameters:
    ///   - size: of the file, in bytes; nil where it is not known, and for a directory.
    ///   - body: makes the request.
    package func copying<Value: Sendable>(
        _ size: Int64?, to target: HTTPURL, _ body: (_ isLong: Bool) async throws -> Value
    ) async throws -> Value {
        let isLarge = size.map { $0 > Self.largestShort } ?? true
        let isLong = state.withLock { state in
            let isAgain = state.timedOut.remove(target) != nil
            return isLarge || isAgain || size.map { $0 >= state.slowSize ?? .max } == true
        }
        let start = ContinuousClock.now
        do {
            let value = try await body(isLong)
            let took = ContinuousClock.now - start
            if let size, !isLarge, isLong { state.withLock { $0.note(size, isSlow: took > ordinaryTime) } }
            return value
        } catch let error as FileProviderError where error.code == .timedOut {
            state.withLock { state in
                if state.timedOut.count >= Self.most { state.timedOut = [] }
                state.timedOut.insert(target)
            }
            throw error
        }
    }
}
