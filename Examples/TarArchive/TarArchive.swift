import FileProvider
import Foundation

/// An archive, open for reading.
final class TarArchive: Sendable {
    /// Changes when the archive does.
    struct Stamp: Equatable, Sendable {
        var size: Int
        var modifiedAt: Date?
        var inode: Int
    }

    let stamp: Stamp
    private let file: FileHandle

    /// - Throws: `serverUnreachable` if the archive does not exist: a missing archive is not an empty one.
    init(at path: String) throws {
        guard FileManager.default.fileExists(atPath: path) else {
            throw FileProviderError(.serverUnreachable, "there is no '\(path)'")
        }
        do {
            file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            stamp = Stamp(
                size: attributes[.size] as? Int ?? 0, modifiedAt: attributes[.modificationDate] as? Date,
                inode: attributes[.systemFileNumber] as? Int ?? 0)
        } catch {
            throw FileProviderError(.serverUnreachable, "'\(path)' cannot be read: \(error.localizedDescription)")
        }
    }

    deinit {
        try? file.close()
    }

    /// Reads up to `count` bytes. Calls are serialized.
    func bytes(at offset: Int64, count: Int) throws -> [UInt8] {
        do {
            try file.seek(toOffset: UInt64(offset))
            return [UInt8](try file.read(upToCount: count) ?? Data())
        } catch {
            throw FileProviderError(.serverUnreachable, "the archive cannot be read: \(error.localizedDescription)")
        }
    }
}
