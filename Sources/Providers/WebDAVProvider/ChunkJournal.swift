import Foundation
import SystemPackage

/// An upload in chunks that was begun and has not ended.
struct ChunkRecord: Codable, Hashable, Sendable {
    /// The name of its folder on the server.
    var folder: String
    /// The path of the address where the file is to be.
    var target: String
    var size: Int64
    var chunkSize: Int64
    /// Seconds since 1970.
    var begun: Int64
    /// SHA-256 of the chunks that the server has taken, by their numbers.
    var digests: [Int: String] = [:]
}

/// The uploads in chunks that are under way, a file each in the provider's folder.
struct ChunkJournal: Sendable {
    private let directory: FilePath

    init(in stateDirectory: FilePath) {
        directory = stateDirectory.appending("chunks")
    }

    static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    var records: [ChunkRecord] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.string)) ?? []
        return names.compactMap { name in
            FileManager.default.contents(atPath: directory.appending(name).string)
                .flatMap { try? JSONDecoder().decode(ChunkRecord.self, from: $0) }
                // A record whose numbers make no sense was damaged, and is not gone on with.
                .flatMap { $0.size >= 0 && $0.chunkSize > 0 && $0.begun >= 0 ? $0 : nil }
        }
    }

    func record(for target: String) -> ChunkRecord? {
        records.first { $0.target.utf8.elementsEqual(target.utf8) }
    }

    func save(_ record: ChunkRecord) throws {
        try FileManager.default.createDirectory(atPath: directory.string, withIntermediateDirectories: true)
        try JSONEncoder().encode(record).write(to: file(of: record), options: .atomic)
    }

    func remove(_ record: ChunkRecord) {
        try? FileManager.default.removeItem(at: file(of: record))
    }

    private func file(of record: ChunkRecord) -> URL {
        URL(fileURLWithPath: directory.appending(record.folder).string)
    }
}
