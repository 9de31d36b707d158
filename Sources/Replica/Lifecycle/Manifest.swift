import FileProvider
import Foundation
import Syscalls
import SystemPackage

/// What a folder of kept data says of itself: JSON, an item a line, so that it can be read without holding it in memory.
/// Docs/Keeping.md explains it to other readers.
enum Manifest {
    static let fileName = "manifest.json"
    /// The folder beside it that holds the files.
    static let files = "files"
    static let format = "yonder-manifest"
    static let version = 1

    struct Header: Codable, Sendable {
        var format: String
        var version: Int
        var domain: String
        var source: String
        /// `dirty` or `downloaded`.
        var keep: String
    }

    /// An item. Absent is null; times are nanoseconds since 1970, byte strings in Base64.
    struct Item: Codable, Sendable {
        /// Below `files`, names separated by slashes.
        var path: String
        /// As in the database.
        var kind: Int
        var size: Int64
        /// Whether its content is here: a file's bytes below `files`, all of a directory's entries.
        var isHere: Bool
        /// Null for what the remote has never heard of.
        var identifier: String?
        /// The remote's name for it, where it has another than the path says.
        var remoteName: String?
        /// The path of the directory that holds it on the remote, where that is another.
        var remoteDirectory: String?
        /// What the remote has not got, in bits as in the database.
        var changedFields: UInt32
        var heldFields: UInt32
        var isExcluded: Bool
        var contentVersion: Data?
        var metadataVersion: Data?
        var remoteSize: Int64?
        var remoteModified: Int64?
        var permissions: UInt16?
        var owner: UInt32?
        var group: UInt32?
        var modified: Int64
        var created: Int64
        var accessed: Int64?
        var linkTarget: String?
        var device: UInt32?
        var attributes: [String: Data]?
        /// Of what has several names: the same number for all of them.
        var link: Int64?
        var userPolicy: Int?
        var conflictOf: String?
        var favoriteRank: Int64?
        var tagData: Data?
        /// When it was moved into the trash here, where the remote has not heard of that; then `path` is where the remote
        /// has it, and nothing of it lies below `files`.
        var trashedAt: Int64?
        /// Whose trash it lies in.
        var trashOwner: UInt32?
    }

    /// Something that was removed here, and that the remote still has.
    struct Removed: Codable, Sendable {
        /// Where it was.
        var path: String
        var kind: Int
        var contentVersion: Data
        var metadataVersion: Data
    }

    /// Anything wrong with a manifest, in words.
    struct Defect: Error, CustomStringConvertible {
        var description: String
    }
}

/// Writes a manifest, line by line.
final class ManifestWriter {
    private let file: FileHandle
    private var buffer = Data()
    private var isFirst = true
    private let encoder: JSONEncoder

    init(at path: FilePath, _ header: Manifest.Header) throws {
        guard FileManager.default.createFile(atPath: path.string, contents: nil, attributes: [.posixPermissions: 0o600])
        else { throw Errno.ioError }
        file = try FileHandle(forWritingTo: URL(fileURLWithPath: path.string))
        encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var line = try encoder.encode(header)
        line.removeLast()
        buffer += line + Data(#","items":["#.utf8)
    }

    func add(_ item: some Encodable) throws {
        buffer += Data((isFirst ? "\n" : ",\n").utf8)
        isFirst = false
        buffer += try encoder.encode(item)
        if buffer.count > 1 << 18 { try flush() }
    }

    /// What follows was removed.
    func beginRemoved() {
        buffer += Data("\n],\"removed\":[".utf8)
        isFirst = true
    }

    /// Ends it and puts it on the disk.
    func finish() throws {
        buffer += Data("\n]}\n".utf8)
        try flush()
        try file.synchronize()
        try file.close()
    }

    private func flush() throws {
        try file.write(contentsOf: buffer)
        buffer.removeAll(keepingCapacity: true)
    }
}

/// Reads a manifest, line by line.
struct ManifestReader {
    let header: Manifest.Header
    private let path: FilePath

    /// - Returns: nil when the file is not there, or is somebody else's.
    /// - Throws: ``Manifest/Defect`` for one that a newer Yonder wrote.
    init?(in folder: FilePath) throws {
        path = folder.appending(Manifest.fileName)
        guard let status = try? FileStatus(at: path), status.kind == .regular else { return nil }
        var found: Manifest.Header?
        try Self.lines(of: path) { line in
            guard line.ends(with: Data(#","items":["#.utf8)) else { return false }
            let text = line.dropLast(#","items":["#.utf8.count) + Data("}".utf8)
            found = try? JSONDecoder().decode(Manifest.Header.self, from: text)
            return false
        }
        guard let found, found.format == Manifest.format else { return nil }
        guard found.version <= Manifest.version else {
            throw Manifest.Defect(description: "'\(path)' was written by a newer Yonder")
        }
        header = found
    }

    func read(
        items: (Manifest.Item) throws -> Void, removed: (Manifest.Removed) throws -> Void
    ) throws {
        let decoder = JSONDecoder()
        var isInRemoved = false
        var number = 0
        var isComplete = false
        try Self.lines(of: path) { line in
            number += 1
            if number == 1 || line.isEmpty { return true }
            if line.first != UInt8(ascii: "{") {
                isComplete = isInRemoved
                isInRemoved = true
                return true
            }
            let text = line.last == UInt8(ascii: ",") ? line.dropLast() : line
            do {
                if isInRemoved {
                    try removed(decoder.decode(Manifest.Removed.self, from: text))
                } else {
                    try items(decoder.decode(Manifest.Item.self, from: text))
                }
            } catch let error as DecodingError {
                throw Manifest.Defect(description: "line \(number) of '\(path)' cannot be read: \(error)")
            }
            return true
        }
        guard isComplete else { throw Manifest.Defect(description: "'\(path)' ends too early") }
    }

    /// - Parameter body: false ends it.
    private static func lines(of path: FilePath, _ body: (Data) throws -> Bool) throws {
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path.string))
        defer { try? file.close() }
        var rest = Data()
        while let piece = try file.read(upToCount: 1 << 18), !piece.isEmpty {
            rest += piece
            var start = rest.startIndex
            while let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
                guard try body(Data(rest[start..<end])) else { return }
                start = rest.index(after: end)
            }
            rest = Data(rest[start...])
        }
        if !rest.isEmpty { _ = try body(rest) }
    }
}

extension Data {
    fileprivate func ends(with other: Data) -> Bool { suffix(other.count).elementsEqual(other) }
}
