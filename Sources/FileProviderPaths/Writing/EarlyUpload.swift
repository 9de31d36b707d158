import FileProvider
import Synchronization

/// The upload of a file to a hidden name while the file is being written.
///
/// A digest of each piece that was sent is kept. When the whole content is available as a ``ContentSource``, the rest is sent
/// from it, and the last piece only after every earlier piece was compared with it. The server then has one generation of
/// the content, or the upload is discarded.
package final class EarlyUpload: Sendable {
    private struct State {
        /// Of the pieces that were sent before the whole content was available, in order.
        var digests: [[UInt8]] = []
        var position: Int64 = 0
        /// The whole content, before ``finish(with:)``.
        var offered: ContentSource?
        /// The whole content, after ``finish(with:)``.
        var source: ContentSource?
        /// The number of pieces that are equal to those of the whole content.
        var compared: Task<Int, any Error>?
        var isSent: Bool?
    }

    /// The file was overwritten after its beginning was sent, or its upload was cancelled.
    private struct GivenUp: Error {}

    package let hidden: RemotePath
    private let content: GrowingContent
    /// In bytes.
    private let piece: Int
    private let digest: @Sendable ([UInt8]) -> [UInt8]
    /// The call that sends it.
    private let context = CallContext.current
    private let state = Mutex(State())
    private let response = OneShot<Bool>()
    /// The upload is aborted when there is no new content for this time.
    private static let patience = Duration.seconds(10)
    /// How often a file is read that has no complete piece yet. The kernel writes it without a message to the daemon.
    private static let pause = Duration.milliseconds(5)

    /// - Parameters:
    ///   - hidden: the path to which the content is sent.
    ///   - piece: the length of each piece but the last, in bytes.
    ///   - digest: a cryptographic hash.
    package init(
        _ content: GrowingContent, hidden: RemotePath, piece: Int = 256 << 10,
        digest: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) {
        self.content = content
        self.hidden = hidden
        self.piece = piece
        self.digest = digest
    }

    // MARK: - Sending

    /// The next piece to send; nil at the end. Calls must not overlap.
    package func next() async throws -> [UInt8]? {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            try Task.checkCancellation()
            let seen = content.changes.count
            let (position, source, offered) = state.withLock { ($0.position, $0.source, $0.offered) }
            if let source { return try await next(of: source, at: position) }
            guard !content.isGivenUp, ContinuousClock.now < deadline else { throw GivenUp() }
            if let offered {
                // Not the last piece: the file must not be complete before finish(with:).
                if position + Int64(piece) < offered.size { return try await next(of: offered, at: position) }
                _ = try await content.changes.wait(after: seen, until: deadline)
                continue
            }
            let bytes = try await BlockingWork.run { [content, piece] in
                try content.read(at: position, count: piece)
            }
            guard bytes.count == piece else {
                _ = try await content.changes.wait(after: seen, until: min(deadline, .now + Self.pause))
                continue
            }
            let digest = digest(bytes)
            state.withLock { state in
                state.digests.append(digest)
                state.position += Int64(bytes.count)
            }
            return bytes
        }
    }

    private func next(of source: ContentSource, at position: Int64) async throws -> [UInt8]? {
        guard !content.isGivenUp, position <= source.size else { throw GivenUp() }
        let count = min(Int64(piece), source.size - position)
        if position + count == source.size { try await compareAll(with: source) }
        guard count > 0 else {
            try source.confirm()
            return nil
        }
        // Reading the end confirms that the content, also the compared pieces, is of one generation.
        let bytes = try await BlockingWork.run { try source.read(at: position, count: Int(count)) }
        try await source.pace(count)
        // Reading the source is progress of the call that completes the upload only.
        context?.noteAnswer()
        state.withLock { $0.position += count }
        return bytes
    }

    /// Records the server's response.
    package func end(isSent: Bool) {
        state.withLock { $0.isSent = isSent }
        response.give(.success(isSent))
    }

    /// Whether ``finish(with:)`` was called.
    package var isTaken: Bool { state.withLock { $0.source != nil } }

    /// The number of bytes that were sent.
    package var sent: Int64 { state.withLock { $0.position } }

    /// Whether the server has accepted the upload; nil before its response.
    package var isSent: Bool? { state.withLock { $0.isSent } }

    // MARK: - The whole content

    /// Announces the whole content before ``finish(with:)``, so that the sent pieces are compared with it while the server is
    /// probed. A caller that does not call ``finish(with:)`` gives up the ``GrowingContent``.
    package func offer(_ source: ContentSource) {
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
    package func finish(with source: ContentSource) async -> Bool {
        let isOver = state.withLock { state in
            if state.isSent != nil { return true }
            if state.offered == nil { state.compared = Task { try await self.compare(from: 0, with: source) } }
            state.source = source
            return false
        }
        if isOver { return false }
        content.changes.notify()
        return (try? await response.value { content.giveUp() }) ?? false
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
        while let sent = state.withLock({ $0.digests.indices.contains(number) ? $0.digests[number] : nil }) {
            guard !content.isGivenUp else { throw GivenUp() }
            let position = Int64(number) * Int64(piece)
            let isSame = try await BlockingWork.run { [digest, piece] in
                let bytes = try source.read(at: position, count: piece)
                return bytes.count == piece && digest(bytes) == sent
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

extension ContentSource {
    /// Completes the upload of content that was sent while it was written.
    ///
    /// - Parameter isUsable: whether the hidden file can become the item.
    /// - Returns: the hidden path of the whole content; nil when all of it has to be sent.
    package func finishEarlyUpload(if isUsable: (EarlyUpload) -> Bool) async throws -> RemotePath? {
        guard let upload = growing?.upload as? EarlyUpload, !upload.isTaken, isUsable(upload) else {
            growing?.giveUp()
            return nil
        }
        // The call that sends it is watched.
        let isSent = await CallContext.waiting { await upload.finish(with: self) }
        if isSent { return upload.hidden }
        try Task.checkCancellation()
        // Content that was written meanwhile is not sent at all.
        try confirm()
        return nil
    }
}
