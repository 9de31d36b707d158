import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import TestSupport
import Testing

@testable import SFTPProvider

@Suite(.tags(.server), .enabled(if: SSHServer.Kind.asyncSSH.program != nil, "AsyncSSH is not installed"))
struct SFTPBareListingTests {
    @Test("SFTP-9: items are what they are on a server whose listings have no attributes")
    func bareListing() async throws {
        let folder = try SFTPFolder(try await SSHServer.start(.asyncSSH, hasBareListings: true))
        try await folder.withRemote { remote in
            let files = FileManager.default
            try Data("content".utf8).write(to: URL(fileURLWithPath: folder["file"]))
            try files.createDirectory(atPath: folder["directory"], withIntermediateDirectories: false)
            try files.createSymbolicLink(atPath: folder["link"], withDestinationPath: "file")
            let entries = try await remote.entries(in: .root, from: nil, limit: 10).entries.sorted { $0.name < $1.name }
            #expect(entries.map(\.name) == ["directory", "file", "link"])
            #expect(entries.map(\.kind) == [.directory, .file, .symbolicLink])
            #expect(entries.map(\.size) == [nil, 7, nil])
            #expect(entries.last?.attributes.symbolicLinkTarget == "file")
            let file = try #require(entries.first { $0.kind == .file })
            let sink = CollectingSink()
            _ = try await remote.read(RemotePath(["file"]), tag: file.tag, range: nil, into: sink)
            #expect(try sink.bytes(in: 0..<7) == Array("content".utf8))
        }
    }

    @Test("SFTP-9: a file whose size the server does not tell when it is asked is an error, and no empty file")
    func noSize() throws {
        var attributes = SFTPAttributes(permissions: 0o100644)
        #expect(!attributes.areComplete)
        #expect(throws: SFTPReader.Malformed.self) {
            try RemoteEntry(answered: "file", SFTPAttributes(permissions: 0o100644))
        }
        attributes.size = 0
        #expect(attributes.areComplete)
        #expect(try RemoteEntry(answered: "file", attributes)?.size == 0)
        let directory = SFTPAttributes(permissions: 0o040755)
        #expect(directory.areComplete)
        #expect(try RemoteEntry(answered: "directory", directory)?.kind == .directory)
    }
}
