import FileProvider
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import TarArchive

/// The conformance of the example, and archives of real programs.
@Suite struct TarArchiveTests {
    @Test(arguments: ProviderConformance.Check.allCases)
    func conforms(to check: ProviderConformance.Check) async throws {
        try await ProviderConformance { try TarRemote() }.run(check)
    }

    /// Runs a test with an archive that `tar` has made of a folder with all kinds of files.
    private func run(
        format: String, _ test: (TarArchiveProvider, String) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let folder = try directory.makeDirectory("folder").string
        let long = String(repeating: "long ", count: 40)
        let script = """
            cd "$1" && mkdir -p "a/$2" && printf deep > "a/$2/file" && printf 'two\\n' > two && chmod 750 two &&
            ln -s two link && : > empty && truncate -s 3000000 zeros && touch -d @1700000000 two && mkfifo fifo &&
            tar --format="$3" -cf ../archive.tar .
            """
        let made = try await Command.run("sh", "-c", script, "-", folder, long, format)
        try #require(made.status == 0, "\(made.errors)")
        let remote = FileProviderDomain(
            identifier: "test", source: TarArchiveProvider.scheme + directory["archive.tar"].string)
        let manager = TestManager(domain: remote, stateDirectory: try directory.makeDirectory("state"))
        try await test(try TarArchiveProvider(manager: manager), long)
    }

    @Test("archives of tar are read exactly", arguments: ["gnu", "posix"])
    func readsArchives(format: String) async throws {
        try await run(format: format) { provider, long in
            let session = ProviderSession(provider: provider, manager: try manager())
            let root = try await session.list()
            #expect(Set(root.map(\.filename)) == ["a", "two", "link", "empty", "zeros"])
            let two = try #require(root.first { $0.filename == "two" })
            #expect(two.permissions == 0o750)
            #expect(two.contentModificationDate == FileTimestamp(seconds: 1_700_000_000, nanoseconds: 0))
            #expect(try await session.fetch(two.itemIdentifier).bytes == Array("two\n".utf8))
            #expect(root.first { $0.filename == "link" }?.symlinkTargetPath == "two")
            #expect(root.first { $0.filename == "zeros" }?.documentSize == 3_000_000)
            let deep = try await session.find("a/\(long)/file")
            #expect(try await session.fetch(deep.itemIdentifier).bytes == Array("deep".utf8))
        }
    }

    private func manager() throws -> TestManager {
        TestManager(domain: FileProviderDomain(identifier: "test", source: "tar"), stateDirectory: "/nonexistent")
    }

    @Test("an invalid archive is reported, and an entry that leads out of the archive is not shown")
    func invalidArchivesAreMalformedResponses() async throws {
        let remote = try TarRemote()
        defer { remote.directory.remove() }
        try await remote.write([1, 2, 3], to: "../../outside")
        try await remote.write([1, 2, 3], to: "inside")
        let manager = TestManager(domain: remote.domain, stateDirectory: remote.stateDirectory)
        let session = ProviderSession(provider: try TarArchiveProvider(manager: manager), manager: manager)
        #expect(try await session.list().map(\.filename) == ["inside"])
        #expect(manager.warnings.contains { $0.contains("../../outside") })
        try Data(repeating: 0xA5, count: 4096).write(to: URL(fileURLWithPath: remote.archive))
        let nonsense = await #expect(throws: FileProviderError.self) { _ = try await session.list() }
        #expect(nonsense?.code == .malformedResponse)
        let refused = #expect(throws: FileProviderError.self) { _ = try TarArchiveProvider(manager: manager) }
        #expect(refused?.code == .malformedResponse)
        try FileManager.default.removeItem(atPath: remote.archive)
        let gone = await #expect(throws: FileProviderError.self) { _ = try await session.list() }
        #expect(gone?.code == .serverUnreachable)
    }

    /// A header of 512 bytes with a valid checksum.
    private func header(_ name: String, type: Character, size: [UInt8]) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 512)
        func put(_ text: [UInt8], at offset: Int) { bytes.replaceSubrange(offset..<offset + text.count, with: text) }
        put(Array(name.utf8), at: 0)
        put(Array("0000644\0".utf8), at: 100)
        put(size, at: 124)
        put(Array("00000000000\0".utf8), at: 136)
        put([type.asciiValue ?? 0x30], at: 156)
        put(Array("ustar\u{0}00".utf8), at: 257)
        put([UInt8](repeating: 0x20, count: 8), at: 148)
        let sum = bytes.reduce(0) { $0 + Int($1) }
        let digits = String(sum, radix: 8)
        put(Array((String(repeating: "0", count: 6 - digits.utf8.count) + digits + "\0 ").utf8), at: 148)
        return bytes
    }

    @Test(
        "WRITE-7: an impossible size in a header is refused in every encoding",
        arguments: ["base256", "pax", "negative", "record"])
    func invalidSizesAreMalformedResponses(how: String) async throws {
        let remote = try TarRemote()
        defer { remote.directory.remove() }
        try await remote.write([1, 2, 3], to: "inside")
        let largest: [UInt8] = [0x80, 0, 0, 0, 0x7F] + [UInt8](repeating: 0xFF, count: 7)
        func octal(_ number: Int) -> [UInt8] {
            let digits = String(number, radix: 8)
            return Array((String(repeating: "0", count: 11 - digits.utf8.count) + digits + "\0").utf8)
        }
        func pax(_ text: String) -> [UInt8] {
            let record = Array(text.utf8)
            return header("pax", type: "x", size: octal(record.count)) + record
                + [UInt8](repeating: 0, count: 512 - record.count)
        }
        let bytes: [UInt8] =
            switch how {
            case "base256": header("huge", type: "0", size: largest)
            case "pax": pax("28 size=9223372036854775807\n") + header("huge", type: "0", size: octal(3))
            case "negative": pax("12 size=-512\n") + header("back", type: "0", size: octal(3))
            default: pax("9223372036854775807 size=3\n") + header("huge", type: "0", size: octal(3))
            }
        try Data(bytes + [UInt8](repeating: 0, count: 2048)).write(to: URL(fileURLWithPath: remote.archive))
        let manager = TestManager(domain: remote.domain, stateDirectory: remote.stateDirectory)
        let session = ProviderSession(provider: try TarArchiveProvider(manager: manager), manager: manager)
        if how == "record" {
            // An invalid record is ignored.
            #expect(try await session.list().map(\.documentSize) == [3])
        } else {
            let error = await #expect(throws: FileProviderError.self) { _ = try await session.list() }
            #expect(error?.code == .malformedResponse)
        }
    }
}
