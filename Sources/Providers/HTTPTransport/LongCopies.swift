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

    /// The targets of the copies that have ended with a timeout. The next attempt is long: on a slow server none would succeed otherwise.
    private let timedOut = Mutex<Set<HTTPURL>>([])

    /// Makes a request that copies or moves an item.
    ///
    /// - Parameters:
    ///   - size: of the file, in bytes; nil where it is not known, and for a directory.
    ///   - body: makes the request.
    package func copying<Value: Sendable>(
        _ size: Int64?, to target: HTTPURL, _ body: (_ isLong: Bool) async throws -> Value
    ) async throws -> Value {
        let isAgain = timedOut.withLock { $0.remove(target) != nil }
        let isLarge = size.map { $0 > Self.largestShort } ?? true
        do {
            return try await body(isLarge || isAgain)
        } catch let error as FileProviderError where error.code == .timedOut {
            timedOut.withLock { targets in
                if targets.count >= Self.most { targets = [] }
                targets.insert(target)
            }
            throw error
        }
    }
}
