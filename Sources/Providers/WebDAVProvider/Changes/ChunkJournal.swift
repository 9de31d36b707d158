import FileProvider
import FileProviderPaths

struct ChunkRecord: Codable, Hashable, Sendable {
    /// The name of its directory on the server.
    var folder: String
    /// The path in the URL of the file.
    var target: String
    var size: Int64
    var chunkSize: Int64
    /// Seconds since 1970.
    var begun: Int64
    /// SHA-256 of the acknowledged chunks, by their numbers.
    var digests: [Int: String] = [:]
    /// Until then, in seconds since 1970, the server may be moving the assembled chunks to the file: they are not to be
    /// replaced, and the file gets no other content.
    var isMovedUntil: Int64?

    var isMoving: Bool { HiddenFiles.secondsLeft(ofMoveUntil: isMovedUntil) > 0 }
}

/// The chunked uploads in progress, with the chunks that the server has acknowledged.
struct ChunkJournal: Sendable {
    private let store: ReportingStore
    private static let uploads = ProviderStoreNamespace<ChunkRecord>("webdav.chunks")

    init(in store: ReportingStore) {
        self.store = store
    }

    /// Records with impossible numbers are damaged and left out.
    var records: [ChunkRecord] {
        store.all(in: Self.uploads).map(\.record).filter { $0.size >= 0 && $0.chunkSize > 0 && $0.begun >= 0 }
    }

    func record(for target: String) -> ChunkRecord? {
        records.first { $0.target.utf8.elementsEqual(target.utf8) }
    }

    func save(_ record: ChunkRecord) throws {
        try store.store.put(record, at: ProviderStoreKey(record.folder), in: Self.uploads)
    }

    func remove(_ record: ChunkRecord) {
        store.attempt { try $0.remove(ProviderStoreKey(record.folder), in: Self.uploads) }
    }
}
