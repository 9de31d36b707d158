import FileProvider
import FileProviderTesting
import Foundation
import SystemPackage
import TarArchive
import TestSupport

/// An archive that the test changes: entries are appended, renamed and deleted in place.
final class TarRemote: RemoteUnderTest {
    let directory: TemporaryDirectory
    let stateDirectory: FilePath
    let archive: String

    init() throws {
        directory = try TemporaryDirectory()
        stateDirectory = try directory.makeDirectory("state")
        archive = directory["archive.tar"].string
        try Data(count: 1024).write(to: URL(fileURLWithPath: archive))
    }

    var domain: FileProviderDomain {
        FileProviderDomain(identifier: "test", source: TarArchiveProvider.scheme + archive)
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        try TarArchiveProvider(manager: manager)
    }

    func makeDirectory(_ path: String) async throws { try append(path + "/", type: "5", []) }

    func write(_ bytes: [UInt8], to path: String) async throws { try append(path, type: "0", bytes) }

    func rename(_ path: String, to newPath: String) async throws {
        try editHeaders { name, header in
            guard let rest = Self.rest(of: name, below: path) else { return }
            Self.put(newPath + rest, in: &header, at: 0, length: 100)
        }
    }

    /// Turns its entries into ones that a reader skips.
    func delete(_ path: String) async throws {
        try editHeaders { name, header in
            if Self.rest(of: name, below: path) != nil { header[156] = UInt8(ascii: "V") }
        }
    }

    func dispose() async { directory.remove() }

    // MARK: - The archive

    /// The rest of an entry's name after a path: nothing, a slash, or a slash and more; nil for other entries.
    private static func rest(of name: String, below path: String) -> String? {
        if name == path { return "" }
        return name.hasPrefix(path + "/") ? String(name.dropFirst(path.count)) : nil
    }

    private func append(_ path: String, type: String, _ bytes: [UInt8]) throws {
        var archive = [UInt8](try Data(contentsOf: URL(fileURLWithPath: self.archive)))
        archive.removeLast(1024)
        var header = [UInt8](repeating: 0, count: 512)
        Self.put(path, in: &header, at: 0, length: 100)
        Self.put("0000644\0", in: &header, at: 100, length: 8)
        Self.put(String(bytes.count, radix: 8), in: &header, at: 124, length: 12)
        Self.put("14000000000", in: &header, at: 136, length: 12)
        Self.put(type, in: &header, at: 156, length: 1)
        Self.put("ustar\0" + "00", in: &header, at: 257, length: 8)
        Self.sign(&header)
        archive += header + bytes + [UInt8](repeating: 0, count: (512 - bytes.count % 512) % 512)
        archive += [UInt8](repeating: 0, count: 1024)
        try Data(archive).write(to: URL(fileURLWithPath: self.archive))
    }

    private func editHeaders(_ edit: (String, inout [UInt8]) -> Void) throws {
        var archive = [UInt8](try Data(contentsOf: URL(fileURLWithPath: self.archive)))
        var offset = 0
        while offset < archive.count, archive[offset] != 0 {
            var header = Array(archive[offset..<offset + 512])
            let name = String(decoding: header[0..<100].prefix { $0 != 0 }, as: UTF8.self)
            let size = Int(String(decoding: header[124..<136].prefix { $0 != 0 }, as: UTF8.self), radix: 8) ?? 0
            edit(name, &header)
            Self.sign(&header)
            archive.replaceSubrange(offset..<offset + 512, with: header)
            offset += 512 + (size + 511) / 512 * 512
        }
        try Data(archive).write(to: URL(fileURLWithPath: self.archive))
    }

    private static func put(_ text: String, in header: inout [UInt8], at offset: Int, length: Int) {
        let bytes = Array(text.utf8) + [UInt8](repeating: 0, count: max(0, length - text.utf8.count))
        header.replaceSubrange(offset..<offset + length, with: bytes.prefix(length))
    }

    private static func sign(_ header: inout [UInt8]) {
        put("        ", in: &header, at: 148, length: 8)
        let sum = header.reduce(0) { $0 + Int($1) }
        let digits = String(sum, radix: 8)
        put(String(repeating: "0", count: 6 - digits.count) + digits + "\0 ", in: &header, at: 148, length: 8)
    }
}
