import Crypto
import FileProvider
import FileProviderPaths
import HTTPTransport
import Synchronization

/// The upload of a file to a hidden name while the file is being written.
///
/// A digest of each piece that was sent is kept. When the whole content is available as a ``ContentSource``, the rest is sent
/// from it, and the last piece only after every earlier piece was compared with it. The server then has one generation of
/// the content, or the upload is discarded.
final class EarlyUpload: Sendable {
    private struct State {
        /// Of the pieces that were sent before the whole content was available, in order.
        var digests: [SHA256.Digest] = []
        var position: Int64 = 0
        /// The whole content, before ``finish(with:)``.
        var offered: ContentSource?
        /// The whole content, after ``finish(with:)``.
        var source: ContentSource?
        /// The number of pieces that are equal to those of the whole content.
        var compared: Task<Int, any Error>?
        var isSent: Bool?
        var waiting: CheckedContinuation<Bool, Never>?
    }

    /// The file was overwritten after its beginning was sent, or its upload was cancelled.
    private struct GivenUp: Error {}

    let hidden: RemotePath
    private let content: GrowingContent
    private let state = Mutex(State())
    private static let piece = 256 << 10
    /// The upload is aborted when there is no new content for this time.
    private static let patience = Duration.seconds(10)
    /// How often a file is read that has no complete piece yet. The kernel writes it without a message to the daemon.
    private static let pause = Duration.milliseconds(5)

    init(_ content: GrowingContent, hidden: RemotePath) {
        self.content = content
        self.hidden = hidden
    }

    // MARK: - Sending

    /// The next piece to send; nil at the end. Calls must not overlap.
    func next() async throws -> [UInt8]? {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            try Task.checkCancellation()
            let seen = content.changes.count
            let (position, source, offered) = state.withLock { ($0.position, $0.source, $0.offered) }
            if let source { return try await next(of: source, at: position) }
            guard !content.isGivenUp, ContinuousClock.now < deadline else { throw GivenUp() }
            if let offered {
                // Not the last piece: the file must not be complete before finish(with:).
                if position + Int64(Self.piece) < offered.size { return try await next(of: offered, at: position) }
                _ = try await content.changes.wait(after: seen, until: deadline)
                continue
            }
            let bytes = try await BlockingWork.run { [content] in
                try content.read(at: position, count: Self.piece)
            }
            guard bytes.count == Self.piece else {
                _ = try await content.changes.wait(after: seen, until: min(deadline, .now + Self.pause))
                continue
            }
            let digest = SHA256.hash(data: bytes)
            state.withLock { state in
                state.digests.append(digest)
                state.position += Int64(bytes.count)
            }
            return bytes
        }
    }

    private func next(of source: ContentSource, at position: Int64) async throws -> [UInt8]? {
        guard !content.isGivenUp, position <= source.size else { throw GivenUp() }
        let count = min(Int64(Self.piece), source.size - position)
        if position + count == source.size { try await compareAll(with: source) }
        guard count > 0 else {
            try source.confirm()
            return nil
        }
        // Reading the end confirms that the content, also the compared pieces, is of one generation.
        let bytes = try await BlockingWork.run { try source.read(at: position, count: Int(count)) }
        state.withLock { $0.position += count }
        return bytes
    }

    /// Records the server's response.
    func end(isSent: Bool) {
        let waiting = state.withLock { state in
            state.isSent = isSent
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: isSent)
    }

    /// Whether ``finish(with:)`` was called.
    var isTaken: Bool { state.withLock { $0.source != nil } }

    /// The number of bytes that were sent.
    var sent: Int64 { state.withLock { $0.position } }

    /// Whether the server has accepted the upload; nil before its response.
    var isSent: Bool? { state.withLock { $0.isSent } }

    // MARK: - The whole content

    /// Announces the whole content before ``finish(with:)``, so that the sent pieces are compared with it while the server is
    /// probed. A caller that does not call ``finish(with:)`` gives up the ``GrowingContent``.
    func offer(_ source: ContentSource) {
        state.withLock { state in
            guard state.isSent == nil, state.offered == nil, state.source == nil else { return }
            state.compared = Task { try await self.compare(from: 0, with: source) }
            state.offered = source
        }
        content.changes.notify()
    }

    /// Sends the rest.
    ///
    /// - Returns: whether the server has the whole content; false when it has to be sent again.
    func finish(with source: ContentSource) async -> Bool {
        let isOver = state.withLock { state in
            if state.isSent != nil { return true }
            if state.offered == nil { state.compared = Task { try await self.compare(from: 0, with: source) } }
            state.source = source
            return false
        }
        if isOver { return false }
        content.changes.notify()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isSent = state.withLock { state in
                    if state.isSent == nil { state.waiting = continuation }
                    return state.isSent
                }
                if let isSent { continuation.resume(returning: isSent) }
            }
        } onCancel: {
            content.giveUp()
        }
    }

    private func compareAll(with source: ContentSource) async throws {
        let task = state.withLock { $0.compared }
        // One piece may have been in flight when the comparison began.
        let done = try await task?.value ?? 0
        _ = try await compare(from: done, with: source)
    }

    /// - Returns: the number of the piece after the last one that was compared.
    private func compare(from first: Int, with source: ContentSource) async throws -> Int {
        var number = first
        while let digest = state.withLock({ $0.digests.indices.contains(number) ? $0.digests[number] : nil }) {
            guard !content.isGivenUp else { throw GivenUp() }
            let position = Int64(number) * Int64(Self.piece)
            let isSame = try await BlockingWork.run {
                let bytes = try source.read(at: position, count: Self.piece)
                return bytes.count == Self.piece && SHA256.hash(data: bytes) == digest
            }
            guard isSame else {
                content.giveUp()
                throw GivenUp()
            }
            number += 1
        }
        return number
    }
}
