import FileProvider
import Replica
import Synchronization
import Syscalls
import SystemPackage

/// Finds out whether the remote has the very bytes that are here, by fetching them.
struct ContentComparison: SyncPart {
    let context: SyncContext

    func isEqual(_ remote: FileProviderItem, to number: InodeNumber) async throws -> Bool {
        let local = try replica.openContent(of: number)
        defer { try? local.close() }
        let sink = ComparingSink(local: local, traffic: calls.traffic)
        let request = FileProviderRequest(reason: .synchronization)
        do {
            _ = try await calls.make(.fetchContents, for: request) { provider in
                try await provider.fetchContents(
                    for: remote.itemIdentifier, version: remote.itemVersion.contentVersion, range: nil,
                    request: request, into: sink)
            }
        } catch {
            guard sink.isDifferent else { throw error }
        }
        return !sink.isDifferent && sink.count == remote.documentSize
    }

    /// - Parameter digests: as ``ContentDigest``.
    func isAny(of digests: Set<[UInt8]>, _ remote: FileProviderItem) async throws -> Bool {
        let size = remote.documentSize ?? 0
        let content = ContentSource(descriptor: try replica.makeScratchFile(), size: size)
        let sink = DownloadSink(
            identifier: remote.itemIdentifier, size: size, descriptor: content.descriptor,
            arrived: { [traffic = calls.traffic] in traffic.receive($0.upperBound - $0.lowerBound) },
            overflowed: { _ in },
            paced: { [traffic = calls.traffic] in try await traffic.receiving.pass($0) {} })
        _ = try await calls.make(.fetchContents, for: FileProviderRequest(reason: .synchronization)) { provider in
            try await provider.fetchContents(
                for: remote.itemIdentifier, version: remote.itemVersion.contentVersion, range: nil,
                request: FileProviderRequest(reason: .synchronization), into: sink)
        }
        return await ContentDigest.of(content).map(digests.contains) ?? false
    }
}

/// Compares what comes with a local file.
private final class ComparingSink: ContentSink {
    private struct State {
        var isDifferent = false
        var count: Int64 = 0
    }

    private struct Different: Error {}

    private let local: FileDescriptor
    private let traffic: ContentTraffic
    private let state = Mutex(State())
    private static let piece: Int64 = 1 << 20

    init(local: FileDescriptor, traffic: ContentTraffic) {
        self.local = local
        self.traffic = traffic
    }

    var isDifferent: Bool { state.withLock { $0.isDifferent } }
    var count: Int64 { state.withLock { $0.count } }

    func write(_ bytes: RawSpan, at offset: Int64) throws {
        try note(local.holds(bytes, at: offset), count: Int64(bytes.byteCount))
    }

    func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws {
        var position = offset
        while position < offset + count {
            let wanted = Int(min(Self.piece, offset + count - position))
            let other = try descriptor.readBytes(at: position, count: wanted)
            let own = try local.readBytes(at: position, count: wanted)
            try note(own == other && own.count == wanted, count: Int64(wanted))
            position += Int64(wanted)
        }
    }

    private func note(_ isEqual: Bool, count: Int64) throws {
        traffic.receive(count)
        state.withLock { state in
            state.count += count
            if !isEqual { state.isDifferent = true }
        }
        if !isEqual { throw Different() }
    }
}
