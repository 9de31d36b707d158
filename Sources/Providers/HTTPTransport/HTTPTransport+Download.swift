import FileProvider
import Logging
import NIOCore
import Synchronization

/// A download of a file's content or of a range of it.
package struct HTTPDownload: Sendable {
    /// A GET without `Range`.
    package var request: HTTPRequest
    /// Not empty; nil for all of it.
    package var range: Range<Int64>?
    /// How long the whole content is, where that is known.
    package var size: Int64?
    /// Whether a coding that the server names is the content's own: an object store keeps `Content-Encoding` with the bytes, and gives
    /// them as they are. What a proxy has coded has a weak ETag, or none, and is refused nevertheless.
    package var keepsCoding = false
    /// Called with the head of each response with content. Throws if it is not the requested content, normally
    /// `versionNoLongerAvailable`.
    package var check: @Sendable (HTTPResponseHead) throws -> Void
    /// The error for a response without content, of whose body it gets the beginning.
    package var failure: @Sendable (HTTPResponse) -> any Error

    package init(
        _ request: HTTPRequest, range: Range<Int64>? = nil, size: Int64? = nil,
        check: @escaping @Sendable (HTTPResponseHead) throws -> Void = { _ in },
        failure: @escaping @Sendable (HTTPResponse) -> any Error
    ) {
        self.request = request
        self.range = range
        self.size = size
        self.check = check
        self.failure = failure
    }
}

extension HTTPTransport {
    /// Downloads content into a sink as it arrives. After a broken connection it continues from there, as long as each
    /// attempt makes progress and many attempts together make enough. The content must then be unchanged by its `ETag` or
    /// `Last-Modified`.
    ///
    /// - Returns: the head of the first response.
    /// - Throws: the errors of `check`, `failure` and the sink; `versionNoLongerAvailable` when the content changed;
    ///   `malformedResponse` for too few or too many bytes, also on average over many responses.
    package func download(_ download: HTTPDownload, into sink: any ContentSink) async throws -> HTTPResponseHead {
        let progress = DownloadProgress(start: download.range?.lowerBound ?? 0)
        var fruitless = 0
        var requests = 0
        while true {
            let (first, before) = (progress.first, progress.position)
            requests += 1
            guard requests <= Self.freeRequests || progress.count >= Int64(requests) * Self.leastPerRequest else {
                throw FileProviderError(
                    .malformedResponse,
                    "\(download.request.url.host) has given \(progress.count) bytes in \(requests - 1) answers")
            }
            do {
                try await fetch(download, progress, into: sink)
                // A server may give less than it was asked for, as long as it says so.
                guard let first = progress.first, let end = progress.end, progress.position < end else {
                    if let first = progress.first { return first }
                    continue
                }
                guard progress.position > before else {
                    throw FileProviderError(.malformedResponse, "\(first.url.host) gives nothing of what there is")
                }
            } catch let error as FileProviderError {
                guard [.serverUnreachable, .timedOut].contains(error.code), first != nil || progress.first != nil else {
                    throw error
                }
                fruitless = progress.position > before ? 1 : fruitless + 1
                guard let pause = configuration.retries.pause(after: fruitless) else { throw error }
                logger.debug("\(download.request.url.path): \(error.message), goes on at \(progress.position)")
                do {
                    try await Task.sleep(for: pause)
                } catch {
                    throw FileProviderError(.userCancelled)
                }
            }
        }
    }

    /// The number of requests that may return any number of bytes.
    private static let freeRequests = 64
    /// The average number of bytes of a response when there are more.
    private static let leastPerRequest: Int64 = 1024

    /// Requests the missing part once.
    private func fetch(
        _ download: HTTPDownload, _ progress: DownloadProgress, into sink: any ContentSink
    ) async throws {
        var request = download.request
        let start = progress.position
        // Only the first request for a whole file goes without a range: an empty file has none.
        let end = download.range?.upperBound ?? progress.end
        if let end {
            if start >= end, progress.first != nil { return }
            request.fields["Range"] = "bytes=\(start)-\(max(start, end - 1))"
        } else if start > 0 {
            request.fields["Range"] = "bytes=\(start)-"
        }
        try await exchange(request) { head, body in
            guard head.status == 200 || head.status == 206 else {
                throw download.failure(HTTPResponse(head: head, body: try await body.beginning(upTo: 64 << 10)))
            }
            try download.check(head)
            let part = try DownloadPart(head, from: start, of: download, until: progress.end)
            try progress.begin(head, end: part.goal)
            try await progress.take(part, from: body, into: sink)
        }
    }
}

/// The progress of a download over its attempts, which do not overlap.
private final class DownloadProgress: Sendable {
    private let state: Mutex<(position: Int64, first: HTTPResponseHead?, end: Int64?)>
    private let start: Int64

    init(start: Int64) {
        self.start = start
        state = Mutex((start, nil, nil))
    }

    var first: HTTPResponseHead? { state.withLock { $0.first } }
    var position: Int64 { state.withLock { $0.position } }
    /// The number of bytes that arrived.
    var count: Int64 { position - start }
    var end: Int64? { state.withLock { $0.end } }

    /// - Throws: `versionNoLongerAvailable` when the content is not that of the first response.
    func begin(_ head: HTTPResponseHead, end: Int64?) throws {
        try state.withLock { state in
            guard let first = state.first else {
                state.first = head
                state.end = end
                return
            }
            let fields = ["ETag", "Last-Modified"]
            let changed =
                fields.first { first.fields[$0] != nil }
                .map { Self.opaque(first.fields[$0]) != Self.opaque(head.fields[$0]) } ?? false
            guard !changed, state.end == end || state.end == nil else {
                throw FileProviderError(.versionNoLongerAvailable, "the content changed while it was fetched")
            }
        }
    }

    /// A tag without its weakness mark, which Apache sets only in the first second after a change.
    private static func opaque(_ tag: String?) -> String? {
        guard let tag, tag.utf8.starts(with: "W/".utf8) else { return tag }
        return String(tag.utf8.dropFirst(2))
    }

    func take(_ part: DownloadPart, from body: HTTPBodyReader, into sink: any ContentSink) async throws {
        var skip = part.skip
        while var piece = try await body.next() {
            if skip > 0 {
                let skipped = Int(min(skip, Int64(piece.readableBytes)))
                skip -= Int64(skipped)
                piece.moveReaderIndex(forwardBy: skipped)
            }
            let here = position
            if let end = part.end, here + Int64(piece.readableBytes) > end {
                // A server that ignores ranges sends what follows the range too.
                guard part.mayExceed else { throw part.wrong("more bytes than it said") }
                piece.moveWriterIndex(to: piece.readerIndex + Int(end - here))
            }
            if piece.readableBytes > 0 {
                let bytes = piece
                try await body.locally { try sink.write(bytes.readableBytesSpan, at: here) }
                state.withLock { $0.position += Int64(bytes.readableBytes) }
                try await body.whileWaiting { try await sink.pace(Int64(bytes.readableBytes)) }
            }
            if part.mayExceed, let end = part.end, position >= end { return }
        }
        if let end = part.end, position < end { throw part.wrong("fewer bytes than it said") }
    }
}

/// The part of the content that one response contains.
private struct DownloadPart {
    /// The number of bytes before the requested ones.
    var skip: Int64 = 0
    /// The end of the requested bytes in it; nil where only the end of the response shows it.
    var end: Int64?
    /// The end of all requested bytes.
    var goal: Int64?
    /// Bytes that were not requested may follow.
    var mayExceed = false
    private let host: String

    /// - Parameter known: the end of all requested bytes, as the first response has told it.
    init(
        _ head: HTTPResponseHead, from start: Int64, of download: HTTPDownload, until known: Int64?
    ) throws {
        host = head.url.host
        let (range, size) = (download.range, download.size)
        let isStrong = head.fields["ETag"].map { !$0.utf8.starts(with: "W/".utf8) } ?? false
        if let coding = head.fields["Content-Encoding"], !coding.isSameField(as: "identity"),
            !download.keepsCoding || !isStrong
        {
            throw wrong("content in a coding that was not requested")
        }
        let total: Int64?
        if head.status == 206 {
            // Some servers give more than was asked for: all of it for its first byte (sabre/dav 1.8), whole blocks.
            guard let bounds = ContentRange(head.fields["Content-Range"]), bounds.range.contains(start) else {
                throw wrong("another range than was asked for")
            }
            total = bounds.total
            skip = start - bounds.range.lowerBound
            // The length of the whole may be a star.
            goal = range?.upperBound ?? total ?? size ?? known
            guard let goal else { throw wrong("a part, and not the length of the whole") }
            end = min(bounds.range.upperBound, goal)
            mayExceed = end != bounds.range.upperBound
        } else {
            total = head.contentLength
            skip = start
            end = range?.upperBound ?? total ?? size
            goal = end
            mayExceed = range != nil
            if let range, let total, range.upperBound > total { throw wrong("fewer bytes than it said") }
        }
        if let size, let total, size != total { throw wrong("\(total) bytes where it had said \(size)") }
    }

    func wrong(_ what: String) -> FileProviderError {
        FileProviderError(.malformedResponse, "\(host) gives \(what)")
    }
}
