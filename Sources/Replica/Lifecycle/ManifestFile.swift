import Foundation
import Syscalls
import SystemPackage

final class ManifestWriter {
    private let file: FileHandle
    private var buffer = Data()
    private var isFirst = true
    private let encoder: JSONEncoder

    init(at path: FilePath, _ header: Manifest.Header) throws {
        file = FileHandle(
            fileDescriptor: try FileDescriptor.open(
                path, .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: .ownerReadWrite
            ).rawValue, closeOnDealloc: true)
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

struct ManifestReader {
    let header: Manifest.Header
    private let path: FilePath

    /// - Returns: nil when the file does not exist, or is no manifest of Yonder's.
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
        let file = FileHandle(
            fileDescriptor: try FileDescriptor.open(path, .readOnly, options: .closeOnExec).rawValue,
            closeOnDealloc: true)
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
