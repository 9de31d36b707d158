import Foundation
import FileProvider

/// Shows an uncompressed tar archive as a read-only folder: a complete provider, to read and to copy from.
///
/// Its source is `tar://` and the absolute path of the archive. Items come from the index of the archive, which is
/// read again when the archive changes. The index contains the offset of each file's bytes, so any range can be
/// fetched.
public struct TarArchiveProvider: FileProviderReplicatedExtension {
    public static let scheme = "tar://"
    private let path: String
    private let manager: any FileProviderManager
    private let indexes = TarIndexCache()

    /// - Throws: `serverUnreachable` if the archive does not exist, `malformedResponse` if the file is something else, so
    ///   that `yonder mount` fails.
    public init(manager: any FileProviderManager) throws {
        path = String(manager.domain.source.dropFirst(Self.scheme.count))
        self.manager = manager
        try TarReader(try TarArchive(at: path)).checkBeginning()
    }

    /// The provider can fetch ranges. It has no history, so the system compares listed directories now and then.
    public var features: ProviderFeatures { ProviderFeatures(partialContentFetching: true) }

    public func item(for identifier: ItemIdentifier, request: FileProviderRequest) async throws -> FileProviderItem {
        try await index().item(identifier)
    }

    /// Returns at once: the archive is read for the first page.
    public func enumerator(
        for container: ItemIdentifier, request: FileProviderRequest
    ) throws -> any FileProviderEnumerator {
        guard container != .workingSet, container != .trashContainer else {
            throw FileProviderError(.featureUnsupported, "an archive has neither a history nor a trash")
        }
        return Listing(provider: self, directory: container)
    }

    public func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        let index = try await index()
        let item = try index.item(identifier)
        // All bytes must be of the requested version.
        if let version, version != item.itemVersion.contentVersion {
            throw FileProviderError(.versionNoLongerAvailable, item: item)
        }
        let data = try index.data(of: identifier)
        let wanted = (range ?? 0..<item.documentSize.orZero).clamped(to: 0..<item.documentSize.orZero)
        let archive = try TarArchive(at: path)
        var offset = wanted.lowerBound
        while offset < wanted.upperBound {
            try Task.checkCancellation()
            let count = Int(min(1 << 20, wanted.upperBound - offset))
            let position = data + offset
            let bytes = try await blocking { try archive.bytes(at: position, count: count) }
            guard bytes.count == count else { throw FileProviderError(.malformedResponse, "'\(path)' ends too soon") }
            try sink.write(bytes, at: offset)
            offset += Int64(count)
        }
        // If the archive was changed during the read, the version of the bytes is unknown.
        guard try await self.index().item(identifier).itemVersion == item.itemVersion else {
            throw FileProviderError(.versionNoLongerAvailable, item: item)
        }
        return item
    }

    /// The current index of the archive.
    fileprivate func index() async throws -> TarIndex {
        try await blocking { [path, indexes, manager] in
            try indexes.index(of: path) { manager.report("'\(path)': \($0)") }
        }
    }

    private struct Listing: FileProviderEnumerator {
        let provider: TarArchiveProvider
        let directory: ItemIdentifier

        /// A page begins after the item in its token.
        func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
            let items = try await provider.index().items(in: directory)
            let last = String(decoding: page.rawValue, as: UTF8.self)
            let start = items.firstIndex { $0.itemIdentifier.rawValue == last }.map { $0 + 1 }
            guard page == .initial || start != nil else { throw FileProviderError(.pageExpired) }
            let rest = items[(start ?? 0)...].prefix(max(1, suggestedPageSize))
            let isLast = rest.endIndex == items.endIndex
            let next = rest.last.map { FileProviderPage(rawValue: Array($0.itemIdentifier.rawValue.utf8)) }
            return ItemPage(items: Array(rest), nextPage: isLast ? nil : next)
        }
    }
}

/// Runs a blocking body on a Dispatch thread, because Swift's threads must not block.
private func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(with: Result(catching: body)) }
    }
}

extension Int64? {
    fileprivate var orZero: Int64 { self ?? 0 }
}
