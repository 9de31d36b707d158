import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import TestSupport
import Testing

@testable import WebDAVProvider

@Suite("Files that are sent while they are written", .tags(.server), .serialized)
struct EarlyUploadTests {

    /// Runs a test with a file whose first pieces have gone to a server.
    private func run(
        on kind: DAVServer.Kind,
        _ test: (ServedFolder, WebDAVRemote, GrowingFile, _ bytes: [UInt8], _ sending: Task<Void, Never>) async throws
            ->
            Void
    ) async throws {
        try await ServedFolder.run(on: kind) { folder, session async throws in
            let provider = try #require(session.provider as? PathAddressedProvider)
            let remote = try #require(provider.remote as? WebDAVRemote)
            let writing = try GrowingFile()
            let bytes = GrowingFile.bytes(3 << 18 + 12345)
            try writing.write(Array(bytes[..<(2 << 18)]), at: 0)
            let sending = Task { await provider.receive(writing.growing, in: .rootContainer) }
            defer { writing.growing.giveUp() }
            try #require(await hasSent(2 << 18, of: writing))
            #expect(!folder.names.contains("file"))
            try await test(folder, remote, writing, bytes, sending)
            await sending.value
        }
    }

    /// Waits until so much has gone.
    private func hasSent(_ count: Int64, of file: GrowingFile) async -> Bool {
        await eventually(within: .seconds(20)) { (file.growing.upload as? EarlyUpload)?.sent ?? 0 >= count }
    }

    private func isClean(_ folder: ServedFolder, _ names: [String]) async {
        let isClean = await eventually(within: .seconds(15)) { folder.names == names }
        #expect(isClean, "\(folder.names)")
    }

    @Test(
        "DAV-12: the rest is sent when the file is whole, and only then it is seen", arguments: DAVServer.Kind.installed
    )
    func takesOver(on kind: DAVServer.Kind) async throws {
        try await run(on: kind) { folder, remote, writing, bytes, _ in
            try writing.write(Array(bytes[(2 << 18)...]), at: 2 << 18)
            let entry = try await remote.write(
                writing.content(size: bytes.count), to: RemotePath(["file"]), if: .absent)
            #expect(entry.size == Int64(bytes.count))
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data(bytes))
            let upload = try #require(writing.growing.upload as? EarlyUpload)
            #expect(upload.isSent == true)
            await isClean(folder, ["file"])
        }
    }

    @Test(
        "DAV-12: a whole file is sent but for its end while the server is being found out",
        .enabled(if: DAVServer.Kind.apache.program != nil), arguments: [3 << 18, 3 << 18 + 12345], [true, false])
    func offered(size: Int, isTaken: Bool) async throws {
        try await run(on: .apache) { folder, remote, writing, bytes, sending in
            try writing.write(Array(bytes[(2 << 18)..<size]), at: 2 << 18)
            let content = try writing.content(size: size)
            let upload = try #require(writing.growing.upload as? EarlyUpload)
            upload.offer(content)
            try #require(await hasSent(Int64((size - 1) / (1 << 18) * (1 << 18)), of: writing))
            guard isTaken else {
                writing.growing.giveUp()
                await sending.value
                #expect(upload.isSent == false)
                return await isClean(folder, [])
            }
            try await Task.sleep(for: .milliseconds(50))
            #expect(upload.isSent == nil)
            try await remote.write(content, to: RemotePath(["file"]), if: .absent)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data(bytes[..<size]))
            #expect(upload.isSent == true)
            await isClean(folder, ["file"])
        }
    }

    @Test("DAV-12: what was written over after it had gone is sent anew", arguments: DAVServer.Kind.installed)
    func writtenOver(on kind: DAVServer.Kind) async throws {
        try await run(on: kind) { folder, remote, writing, bytes, _ in
            var bytes = bytes
            bytes[1 << 18] ^= 0xFF
            try writing.write(bytes, at: 0)
            try await remote.write(writing.content(size: bytes.count), to: RemotePath(["file"]), if: .absent)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data(bytes))
            let upload = try #require(writing.growing.upload as? EarlyUpload)
            #expect(upload.isSent != true)
            await isClean(folder, ["file"])
        }
    }

    @Test(
        "DAV-12: what was begun before the server was found out counts for nothing where it cannot be relied on",
        .enabled(if: DAVServer.Kind.apache.program != nil))
    func foundOutMeanwhile() async throws {
        try await run(on: .apache) { folder, remote, writing, bytes, _ in
            var capabilities = try await remote.prober.capabilities(probingIn: .root)
            capabilities.takesAnyLength = false
            remote.server.capabilityStore.keep(capabilities)
            try writing.write(Array(bytes[(2 << 18)...]), at: 2 << 18)
            try await remote.write(writing.content(size: bytes.count), to: RemotePath(["file"]), if: .absent)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data(bytes))
            #expect(writing.growing.isGivenUp)
            let upload = try #require(writing.growing.upload as? EarlyUpload)
            #expect(await eventually { upload.isSent == false })
            await isClean(folder, ["file"])
        }
    }

    @Test("DAV-12: a file that has become shorter is sent anew", arguments: DAVServer.Kind.installed)
    func shortened(on kind: DAVServer.Kind) async throws {
        try await run(on: kind) { folder, remote, writing, bytes, _ in
            try await remote.write(writing.content(size: 1 << 18), to: RemotePath(["file"]), if: .absent)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data(bytes[..<(1 << 18)]))
            await isClean(folder, ["file"])
        }
    }

    @Test(
        "DAV-12: a file that is written again before its end has gone is not seen", arguments: DAVServer.Kind.installed)
    func writtenAgain(on kind: DAVServer.Kind) async throws {
        struct Written: Error {}
        try await run(on: kind) { folder, remote, writing, bytes, _ in
            try writing.write(Array(bytes[(2 << 18)...]), at: 2 << 18)
            let content = try writing.content(size: bytes.count) { throw Written() }
            await #expect(throws: Written.self) {
                try await remote.write(content, to: RemotePath(["file"]), if: .absent)
            }
            await isClean(folder, [])
        }
    }

    @Test("DAV-12: nothing is left of a file whose upload was cancelled", arguments: DAVServer.Kind.installed)
    func givenUp(on kind: DAVServer.Kind) async throws {
        try await run(on: kind) { folder, _, writing, _, sending in
            writing.growing.giveUp()
            await sending.value
            await isClean(folder, [])
        }
    }

    @Test(
        "DAV-12: the name may be taken meanwhile: nothing is written over",
        .enabled(if: DAVServer.Kind.apache.program != nil))
    func nameTaken() async throws {
        try await run(on: .apache) { folder, remote, writing, bytes, _ in
            try writing.write(Array(bytes[(2 << 18)...]), at: 2 << 18)
            try await folder.write(Array("theirs".utf8), to: "file")
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.write(writing.content(size: bytes.count), to: RemotePath(["file"]), if: .absent)
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data("theirs".utf8))
            await isClean(folder, ["file"])
        }
    }
}
