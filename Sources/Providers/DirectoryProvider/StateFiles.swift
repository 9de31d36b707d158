import Foundation
import Syscalls
import SystemPackage

/// Small records in the provider's state directory, one JSON file each, written whole or not at all and durable when the
/// call returns. All functions block.
struct StateFiles: Sendable {
    let directory: FilePath

    /// - Returns: nil for a record that is missing or cannot be read.
    func read<Record: Decodable>(_ type: Record.Type, _ name: String) -> Record? {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: path(name).string)) else { return nil }
        return try? JSONDecoder().decode(type, from: data)
    }

    func write(_ record: some Encodable, _ name: String) throws {
        let temporary = path(name).string + ".new"
        try JSONEncoder().encode(record).write(to: URL(fileURLWithPath: temporary))
        let file = try FileDescriptor.open(FilePath(temporary), .readWrite)
        defer { try? file.close() }
        try file.synchronize()
        try FilePath(temporary).move(to: path(name))
        let folder = try FileDescriptor.openDirectory(directory)
        defer { try? folder.close() }
        try folder.synchronize(asDirectory: true)
    }

    func remove(_ name: String) {
        try? path(name).unlinkIfPresent()
    }

    /// The names of the records that begin with a prefix.
    func names(prefix: String) -> [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: directory.string)) ?? []
        return all.filter { $0.hasPrefix(prefix) && $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }

    private func path(_ name: String) -> FilePath { directory.appending(name + ".json") }
}
