import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import SingleFile
import SystemPackage
import TestSupport
import Testing

/// The conformance of the example, and a file that someone else has spoiled.
@Suite struct SingleFileTests {
    @Test(arguments: ProviderConformance.Check.allCases)
    func conforms(to check: ProviderConformance.Check) async throws {
        try await ProviderConformance { try SingleFileUnderTest() }.run(check)
    }

    @Test("a file that is missing or no library is an error, and no item counts as removed")
    func spoiledFile() async throws {
        let remote = try SingleFileUnderTest()
        defer { remote.directory.remove() }
        try await remote.write([1], to: "file")
        let manager = TestManager(domain: remote.domain, stateDirectory: remote.stateDirectory)
        let session = ProviderSession(provider: try await remote.makeProvider(for: manager), manager: manager)
        #expect(try await session.list().map(\.filename) == ["file"])
        for (content, code): (String?, FileProviderError.Code) in [
            ("no library", .malformedResponse), (nil, .serverUnreachable),
        ] {
            let url = URL(fileURLWithPath: remote.domain.source)
            if let content {
                try Data(content.utf8).write(to: url)
            } else {
                try FileManager.default.removeItem(at: url)
            }
            let error = await #expect(throws: FileProviderError.self) { _ = try await session.list() }
            #expect(error?.code == code)
        }
    }
}

/// The example as the conformance suite needs it: the file is changed through a remote of its own, which assigns the
/// same tags.
struct SingleFileUnderTest: RemoteUnderTest {
    let directory: TemporaryDirectory
    let stateDirectory: FilePath
    private let other: SingleFileRemote

    init() throws {
        directory = try TemporaryDirectory()
        stateDirectory = try directory.makeDirectory("state")
        other = try SingleFileRemote(file: directory["library.json"].string)
    }

    var domain: FileProviderDomain {
        FileProviderDomain(identifier: "test", source: directory["library.json"].string)
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        try SingleFileRemote.provider(for: manager)
    }

    private static func path(_ text: String) -> RemotePath {
        RemotePath(text.split(separator: "/").map(String.init))
    }

    func makeDirectory(_ path: String) async throws {
        _ = try await other.makeDirectory(at: Self.path(path), attributes: RemoteAttributes())
    }

    func write(_ bytes: [UInt8], to path: String) async throws {
        let file = directory["content"]
        try Data(bytes).write(to: URL(fileURLWithPath: file.string))
        let descriptor = try FileDescriptor.open(file, .readOnly)
        _ = try await other.write(
            ContentSource(descriptor: descriptor, size: Int64(bytes.count)), to: Self.path(path),
            attributes: RemoteAttributes(), if: .always)
    }

    func rename(_ path: String, to newPath: String) async throws {
        _ = try await other.move(Self.path(path), to: Self.path(newPath), kind: .file)
    }

    func delete(_ path: String) async throws {
        try await other.delete(Self.path(path), kind: .file, if: .always)
    }

    func dispose() async { directory.remove() }
}
