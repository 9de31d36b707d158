import FileProvider
import Logging
import Synchronization

/// A file's content, or a range of it, to be fetched.
package struct HTTPDownload: Sendable {
    /// A GET without `Range`.
    package var request: HTTPRequest
    /// Not empty; nil for all of it.
    package var range: Range<Int64>?
    /// How long the whole content is, where that is known.
    package var size: Int64?
    /// Whether an answer is the content that is wanted, by its fields; asked of every answer with content. Throws when it
    /// is not, `versionNoLongerAvailable` as a rule.
    package var check: @Sendable (HTTPResponseHead) throws -> Void
    /// The error for an answer without content.
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
    /// Fetches content into a sink as it arrives. Where the connection breaks it goes on from there, as long as each
    /// attempt brings something, and many together enough; the content must then still be what it was at first, by its
    /// `ETag` or `Last-Modified`.
    ///
    /// - Returns: the first answer's head.
    /// - Throws: what `check` and `failure` say; `versionNoLongerAvailable` when it changed in the middle;
    ///   `malformedResponse` for too few or too many bytes, also in each of many answers; what the sink throws.
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

    /// So many requests may bring as little as they like.
    private static let freeRequests = 64
    /// How many bytes each must bring on the average when there are more.
    private static let leastPerRequest: Int64 = 1024

    /// One request for what is missing, as far as it gets.
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
        try await send(request) { head, body in
            guard head.status == 200 || head.status == 206 else {
                throw download.failure(HTTPResponse(head: head, body: try await body.all(upTo: 64 << 10)))
            }
            try download.check(head)
            let part = try DownloadPart(head, from: start, range: download.range, size: download.size)
            try progress.begin(head, end: part.goal)
            try await progress.take(part, from: body, into: sink)
        }
    }
}

/// How far a download has come. Used by one attempt after the other.
private final class DownloadProgress: Sendable {
    private let state: Mutex<DownloadState>
    private let start: Int64

    init(start: Int64) {
        self.start = start
        state = Mutex(DownloadState(position: start))
    }

    var first: HTTPResponseHead? { state.withLock { $0.first } }
    var position: Int64 { state.withLock { $0.position } }
    /// How many bytes have come.
    var count: Int64 { position - start }
    var end: Int64? { state.withLock { $0.end } }

    /// - Throws: when the content is not the one of the first answer.
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

    /// A tag without its mark of weakness: Apache gives that to one content for a second, and then no more.
    private static func opaque(_ tag: String?) -> String? {
        guard let tag, tag.utf8.starts(with: "W/".utf8) else { return tag }
        return String(tag.utf8.dropFirst(2))
    }

    func take(_ part: DownloadPart, from body: HTTPBodyReader, into sink: any ContentSink) async throws {
        var skip = part.skip
        while let chunk = try await body.next() {
            var piece = chunk
            if skip > 0 {
                let skipped = Int(min(skip, Int64(chunk.count)))
                skip -= Int64(skipped)
                piece = chunk.dropFirst(skipped)
            }
            let here = position
            if let end = part.end, here + Int64(piece.count) > end {
                // A server that ignores ranges sends what follows the range too.
                guard part.mayExceed else { throw part.wrong("more bytes than it said") }
                piece = piece.prefix(Int(end - here))
            }
            if piece.count > 0 {
                let bytes = piece
                try await body.locally { try bytes.write(to: sink, at: here) }
                state.withLock { $0.position += Int64(bytes.count) }
            }
            if part.mayExceed, let end = part.end, position >= end { return }
        }
        if let end = part.end, position < end { throw part.wrong("fewer bytes than it said") }
    }
}

private struct DownloadState {
    var position: Int64
    var first: HTTPResponseHead?
    var end: Int64?
}

/// What one answer brings of the content.
private struct DownloadPart {
    /// How many bytes come before the ones that are wanted.
    var skip: Int64 = 0
    /// Where the wanted ones in it end; nil where only the end of the answer says so.
    var end: Int64?
    /// Where all that is wanted ends.
    var goal: Int64?
    /// More may follow, and is not wanted.
    var mayExceed = false
    private let host: String

    init(_ head: HTTPResponseHead, from start: Int64, range: Range<Int64>?, size: Int64?) throws {
        host = head.url.host
        if let coding = head.fields["Content-Encoding"], !coding.isSameField(as: "identity") {
            throw wrong("content in a coding that nobody asked for")
        }
        let total: Int64?
        if head.status == 206 {
            // Some servers give more than was asked for: all of it for its first byte (sabre/dav 1.8), whole blocks.
            guard let bounds = ContentRange(head.fields["Content-Range"]), bounds.range.contains(start) else {
                throw wrong("another range than was asked for")
            }
            total = bounds.total
            skip = start - bounds.range.lowerBound
            goal = range?.upperBound ?? total
            end = min(bounds.range.upperBound, goal ?? .max)
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

/// `bytes 0-99/200`.
package struct ContentRange: Hashable, Sendable {
    package var range: Range<Int64>
    package var total: Int64?

    package init?(_ text: String?) {
        guard let text, text.lowercased().hasPrefix("bytes ") else { return nil }
        let parts = text.dropFirst(6).split(separator: "/")
        let bounds =
            parts.first?.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0.trimmingBlanks()) }
            ?? []
        guard parts.count == 2, bounds.count == 2, let first = bounds[0], let last = bounds[1], first >= 0,
            first <= last, last < Int64.max
        else { return nil }
        range = first..<last + 1
        total = Int64(parts[1].trimmingBlanks())
        if let total, total < range.upperBound { return nil }
    }
}
