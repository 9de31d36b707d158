import FileProvider
import Replica
import Synchronization

package enum ThumbnailOutcome: Sendable {
    case image([UInt8])
    /// This version of the file has no thumbnail.
    case none
    case failed(FileProviderError)
}

/// Fetches thumbnails of files without their content: the provider's own, or else what a picture has near its beginning.
struct Thumbnails: Sendable {
    let replica: Replica
    let calls: ProviderCalls

    private static let request = FileProviderRequest(reason: .lookAhead)
    private static let mostInCall = 100
    private static let mostAtOnce = 16
    /// The least length of the longer side.
    static let usualSize = ThumbnailSize(width: 256, height: 256)

    /// - Parameter found: called with each item once, as soon as it is known; from any thread.
    func fetch(_ items: [ItemRecord], found: @escaping @Sendable (ItemRecord, ThumbnailOutcome) -> Void) async {
        let known = items.filter { $0.identifier != nil && $0.inode.kind == .file && $0.inode.size > 0 }
        var others = known
        if calls.provider.features.thumbnails {
            others = []
            for start in stride(from: 0, to: known.count, by: Self.mostInCall) {
                others += await fetchFromProvider(Array(known[start...].prefix(Self.mostInCall)), found)
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for (index, item) in others.enumerated() {
                // Each has a scratch file open.
                if index >= Self.mostAtOnce { await group.next() }
                group.addTask { found(item, await fetchEmbedded(item)) }
            }
        }
    }

    /// - Returns: the items for which the provider has none, or fails to make one.
    private func fetchFromProvider(
        _ items: [ItemRecord], _ found: @escaping @Sendable (ItemRecord, ThumbnailOutcome) -> Void
    ) async -> [ItemRecord] {
        let byIdentifier = Dictionary(items.map { ($0.identifier, $0) }, uniquingKeysWith: { first, _ in first })
        let waiting = Mutex(byIdentifier)
        let without = Mutex<[ItemRecord]>([])
        let progress = CallProgress()
        do {
            try await calls.make(.fetchThumbnails, for: Self.request, progress: progress) {
                [traffic = calls.traffic] provider in
                // A repeated call is for those that are missing.
                let identifiers = waiting.withLock { $0.keys.compactMap(\.self) }
                try await provider.fetchThumbnails(
                    for: identifiers, requestedSize: Self.usualSize, request: Self.request
                ) { identifier, result in
                    progress.advance()
                    // What says nothing of the file leaves it to the end of the call.
                    if case .failure(let error) = result, ProviderCalls.failure(from: error).isOfDomain { return }
                    guard let item = waiting.withLock({ $0.removeValue(forKey: identifier) }) else { return }
                    if case .success(let image?) = result, image.count <= ThumbnailSize.maximumByteCount, !image.isEmpty
                    {
                        traffic.receive(Int64(image.count))
                        found(item, .image(image))
                    } else {
                        without.withLock { $0.append(item) }
                    }
                }
            }
        } catch {
            // Else the server rejects this call and answers for its root: one call was enough to learn that.
            if error.isOfDomain {
                for item in waiting.withLock({ Array($0.values) }) { found(item, .failed(error)) }
                return without.withLock { $0 }
            }
        }
        return waiting.withLock { Array($0.values) } + without.withLock { $0 }
    }

    private func fetchEmbedded(_ item: ItemRecord) async -> ThumbnailOutcome {
        let isSmall = item.inode.size <= EmbeddedThumbnail.reach
        let isWhole = isSmall && PictureName.isScaled(item.name)
        guard let identifier = item.identifier,
            isWhole
                || PictureName.mayHoldThumbnail(item.name)
                    && (isSmall || calls.provider.features.partialContentFetching)
        else { return .none }
        do {
            let length = min(item.inode.size, EmbeddedThumbnail.reach)
            let content = ContentSource(descriptor: try replica.makeScratchFile(), size: length)
            let progress = CallProgress()
            let sink = DownloadSink(of: identifier, into: content, calls.traffic, progress)
            let version = item.base.version.contentVersion
            try await calls.make(.fetchContents, for: Self.request, progress: progress) { provider in
                _ = try await provider.fetchContents(
                    for: identifier, version: version, range: isSmall ? nil : 0..<length, request: Self.request,
                    into: sink)
            }
            let bytes = try content.read(at: 0, count: Int(length))
            if let image = EmbeddedThumbnail.find(in: bytes[...]) { return .image(image) }
            return isWhole ? .image(bytes) : .none
        } catch {
            return .failed(ProviderCalls.failure(from: error))
        }
    }
}

extension FileProviderError {
    /// Whether it says nothing of the item that was asked for: the remote cannot be asked now, or the call was cancelled.
    package var isOfDomain: Bool { [.latchDomain, .stop].contains(code.reaction) }
}
