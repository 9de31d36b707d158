import Crypto
import FileProvider
import HTTPTransport
import Logging
import PathAddressing
import Synchronization

/// A file that is sent to a hidden name while it is being written.
///
/// What has gone is remembered by a digest of each piece. When the whole content is there, as one that can be confirmed,
/// the rest comes from it, and the last piece goes only after every piece that went before was compared with it: what the
/// server then has is one generation, or it is thrown away.
final class EarlyUpload: Sendable {
    private struct State {
        /// Of the pieces that went before the whole content was there, from the beginning on.
        var digests: [SHA256.Digest] = []
        var position: Int64 = 0
        /// The whole content, which somebody will come with if all goes well.
        var offered: ContentSource?
        var source: ContentSource?
        /// How many pieces were found to be those of the source.
        var compared: Task<Int, any Error>?
        var isSent: Bool?
        var waiting: CheckedContinuation<Bool, Never>?
    }

    /// The file was written over after its beginning had gone, or nobody wants it.
    private struct GivenUp: Error {}

    let hidden: RemotePath
    private let content: GrowingContent
    private let state = Mutex(State())
    private static let piece = 256 << 10
    /// So long nothing comes from who writes, nor from who sends the whole file.
    private static let patience = Duration.seconds(10)
    private static let pause = Duration.milliseconds(5)

    init(_ content: GrowingContent, hidden: RemotePath) {
        self.content = content
        self.hidden = hidden
    }

    // MARK: - Sending

    /// The next piece to be sent; nil at the end. Called by one task, one call after the other.
    func next() async throws -> [UInt8]? {
        let start = ContinuousClock.now
        while true {
            try Task.checkCancellation()
            let (position, source, offered) = state.withLock { ($0.position, $0.source, $0.offered) }
            if let source { return try await next(of: source, at: position) }
            guard !content.isGivenUp, ContinuousClock.now - start < Self.patience else { throw GivenUp() }
            if let offered {
                // But not the end: nothing is whole before it was taken.
                if position + Int64(Self.piece) < offered.size { return try await next(of: offered, at: position) }
                try await Task.sleep(for: Self.pause)
                continue
            }
            let bytes = try await BlockingWork.run { [content] in
                try content.read(at: position, count: Self.piece)
            }
            guard bytes.count == Self.piece else {
                try await Task.sleep(for: Self.pause)
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
        // The end of it confirms that all was of one generation, also what was compared.
        let bytes = try await BlockingWork.run { try source.read(at: position, count: Int(count)) }
        state.withLock { $0.position += count }
        return bytes
    }

    /// The server has answered; or it was not sent.
    func end(isSent: Bool) {
        let waiting = state.withLock { state in
            state.isSent = isSent
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: isSent)
    }

    /// Whether somebody has come with the whole content.
    var isTaken: Bool { state.withLock { $0.source != nil } }

    /// How many bytes have gone.
    var sent: Int64 { state.withLock { $0.position } }

    /// Whether the server has it; nil as long as that is not known.
    var isSent: Bool? { state.withLock { $0.isSent } }

    // MARK: - The whole content

    /// The whole content is there, and will be taken when a few things are known: what has gone can be compared with it
    /// meanwhile. Who does not come with it after all gives up what grows.
    func offer(_ source: ContentSource) {
        state.withLock { state in
            guard state.isSent == nil, state.offered == nil, state.source == nil else { return }
            state.compared = Task { try await self.compare(from: 0, with: source) }
            state.offered = source
        }
    }

    /// Sends the rest, of the whole content: the one that was offered, if one was.
    ///
    /// - Returns: whether the server has it all; false when it has to be sent anew.
    func finish(with source: ContentSource) async -> Bool {
        let isOver = state.withLock { state in
            if state.isSent != nil { return true }
            if state.offered == nil { state.compared = Task { try await self.compare(from: 0, with: source) } }
            state.source = source
            return false
        }
        if isOver { return false }
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
        // One piece may have been on its way out when the comparison began.
        let done = try await task?.value ?? 0
        _ = try await compare(from: done, with: source)
    }

    /// - Returns: how many pieces have been compared, from the first on.
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

extension WebDAVRemote: EarlyRemote {
    package func receive(_ content: GrowingContent, in directory: RemotePath) async {
        guard (try? await connect()) != nil, !isOwnCloud, capabilityStore.capabilities?.takesAnyLength != false,
            !content.isGivenUp, let hidden = try? makeHiddenPath(in: directory)
        else { return }
        // To find out a server that nothing is known of takes as long as much of a file.
        async let trial: Void = giveUpUnlessTaken(content, in: directory)
        let upload = EarlyUpload(content, hidden: hidden)
        content.upload = upload
        do {
            let response = try await client.send(
                "PUT", client.url(of: upload.hidden), ["Content-Type": "application/octet-stream"],
                body: .pieces(count: nil) { try await upload.next() })
            upload.end(isSent: response.head.isSuccess)
            // Whoever has come with the whole content sees to what becomes of it.
            if !response.head.isSuccess || !upload.isTaken { removeLater(upload.hidden) }
        } catch {
            client.transport.logger.debug("what was sent of a file that is being written is of no use: \(error)")
            upload.end(isSent: false)
            removeLater(upload.hidden)
        }
        await trial
    }

    private func giveUpUnlessTaken(_ content: GrowingContent, in directory: RemotePath) async {
        guard let capabilities = try? await capabilities(probingIn: directory), capabilities.takesAnyLength else {
            return content.giveUp()
        }
    }

    /// Finds out what has to be known of the server before a file is written, while what was sent of it already is compared.
    func capabilities(toWrite contents: ContentSource, in directory: RemotePath) async throws -> ServerCapabilities {
        (contents.growing?.upload as? EarlyUpload)?.offer(contents)
        do {
            return try await capabilities(probingIn: directory)
        } catch {
            contents.growing?.giveUp()
            throw error
        }
    }

    /// Where all of a content is that was sent while it was being written; nil where it has to be sent.
    func sentEarly(_ contents: ContentSource, _ capabilities: ServerCapabilities) async throws -> RemotePath? {
        guard let upload = contents.growing?.upload as? EarlyUpload, !upload.isTaken, capabilities.takesAnyLength else {
            contents.growing?.giveUp()
            return nil
        }
        if await upload.finish(with: contents) { return upload.hidden }
        try Task.checkCancellation()
        // What was written meanwhile is not to be sent at all.
        try contents.confirm()
        return nil
    }
}
