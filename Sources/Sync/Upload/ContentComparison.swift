import FileProvider
import Replica
import Synchronization
import Syscalls
import SystemPackage

/// Finds out whether the remote has the very bytes that are here, by fetching them.
struct ContentComparison: SyncPart {
    let context: SyncContext

    /// Whether the remote has the content of a file here.
    func isEqual(_ remote: FileProviderItem, to number: InodeNumber) async throws -> Bool {
        let sink = ComparingSink(local: try replica.openContent(of: number), traffic: calls.traffic)
        do {
            try await fetch(remote, into: sink, sink.progress)
        } catch {
            guard sink.isDifferent else { throw error }
        }
        return !sink.isDifferent && sink.count == remote.documentSize
    }

    /// Whether the remote has content with one of the digests of ``ContentDigest``.
    func hasDigest(in digests: Set<[UInt8]>, _ remote: FileProviderItem) async throws -> Bool {
        let content = ContentSource(descriptor: try replica.makeScratchFile(), size: remote.documentSize ?? 0)
        let progress = CallProgress()
        let sink = DownloadSink(of: remote.itemIdentifier, into: content, calls.traffic, progress)
        try await fetch(remote, into: sink, progress)
        return await ContentDigest.of(content).map(digests.contains) ?? false
    }

    private func fetch(
        _ remote: FileProviderItem, into sink: any ContentSink, _ progress: CallProgress
    ) async throws {
        replica.database.unplacedItems.add(remote)
        defer { replica.database.unplacedItems.remove(remote.itemIdentifier) }
        let request = FileProviderRequest(reason: .synchronization)
        _ = try await calls.make(.fetchContents, for: request, progress: progress) { provider in
            try await provider.fetchContents(
                for: remote.itemIdentifier, version: remote.itemVersion.contentVersion, range: nil, request: request,
                into: sink)
        }
    }
}

/// Compares what comes with a local file.
private final class ComparingSink: ContentSink {
    private struct State {
        var isDifferent = false
        /// A call that is repeated gives bytes again.
        var compared = ByteRanges()
    }

    /// Open as long as a call may write to the sink, also one that was given up.
    private let local: FileDescriptor
    private let traffic: ContentTraffic
    let progress = CallProgress()
    private let state = Mutex(State())
    private static let piece: Int64 = 1 << 20

    init(local: FileDescriptor, traffic: ContentTraffic) {
        self.local = local
        self.traffic = traffic
    }

    deinit { try? local.close() }

    var isDifferent: Bool { state.withLock { $0.isDifferent } }
    /// How many bytes of the file were compared.
    var count: Int64 { state.withLock { $0.compared.count } }

    func write(_ bytes: RawSpan, at offset: Int64) throws {
        try note(local.holds(bytes, at: offset), offset..<offset + Int64(bytes.byteCount))
    }

    func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws {
        var position = offset
        while position < offset + count {
            let wanted = Int(min(Self.piece, offset + count - position))
            let other = try descriptor.readBytes(at: position, count: wanted)
            let own = try local.readBytes(at: position, count: wanted)
            try note(own == other && own.count == wanted, position..<position + Int64(wanted))
            position += Int64(wanted)
        }
    }

    private func note(_ isEqual: Bool, _ range: Range<Int64>) throws {
        traffic.receive(range.upperBound - range.lowerBound)
        progress.advance()
        state.withLock { state in
            state.compared.insert(range)
            if !isEqual { state.isDifferent = true }
        }
        // An error of no known kind would be taken for a transient one, and the call repeated.
        if !isEqual { throw Errno.canceled }
    }
}
