import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import WebDAVProvider

/// As Nextcloud documents its chunked upload, on the server that is made after that documentation.
@Suite("uploads in chunks", .tags(.server), .serialized)
struct ChunkedUploadTests {
    private struct BrokenOff: Error {}

    private let bytes: [UInt8] = {
        var bytes = [UInt8](repeating: 7, count: 21 << 20)
        for number in 0..<21 { bytes[number << 20] = UInt8(number) }
        return bytes
    }()

    private func run(
        _ test: (IdentifyingRemote, ProviderSession, TemporaryDirectory) async throws -> Void
    ) async throws {
        try await IdentifyingRemote.run { port, directory in
            let remote = try await IdentifyingRemote(port: port, in: directory, below: "remote.php/dav/files/user/")
            let session = try await remote.session()
            try await test(remote, session, directory)
            await session.provider.invalidate()
        }
    }

    /// What was asked for below the uploads, without the names of their folders.
    private func uploads(_ directory: TemporaryDirectory) -> [String] {
        let text = (try? String(contentsOfFile: directory["requests"].string, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter { $0.contains("/uploads/") }.map { line in
            let parts = line.split(separator: "/", omittingEmptySubsequences: false)
            return parts[0].prefix { $0 != " " } + " " + parts.dropFirst(6).joined(separator: "/")
        }
    }

    private func journal(_ remote: IdentifyingRemote) -> ChunkJournal {
        ChunkJournal(in: ReportingStore(TestManager.store(for: remote.stateDirectory)) { _ in })
    }

    @Test("DAV-17: a large file goes in chunks, a small one at once") func goes() async throws {
        try await run { remote, session, directory in
            var template = ProviderSession.template("large")
            template.contentModificationDate = FileTimestamp(seconds: 981_173_106)
            let made = try await session.create(template, content: bytes, fields: .contentModificationDate)
            #expect(made.stillPending == [])
            #expect(made.item.contentModificationDate == template.contentModificationDate)
            #expect(uploads(directory) == ["MKCOL ", "PUT 00001", "PUT 00002", "PUT 00003", "MOVE .file"])
            #expect(try await remote.content(of: "large") == Data(bytes))
            // Other content is the same item.
            var other = bytes
            other[5] = 8
            let changed = try await session.modify(made.item, .contents, content: other)
            #expect(changed.item.itemIdentifier == made.item.itemIdentifier)
            #expect(try await remote.content(of: "large") == Data(other))
            let before = uploads(directory).count
            _ = try await session.create(ProviderSession.template("small"), content: [1])
            #expect(uploads(directory).count == before)
            #expect(journal(remote).records.isEmpty)
        }
    }

    @Test("DAV-24: a file with a date that the server refuses is uploaded, and the date stays here")
    func earlyDates() async throws {
        try await run { remote, session, directory in
            for (name, content) in [("small", [1, 2]), ("large", bytes)] as [(String, [UInt8])] {
                for seconds in [-5, 86_400] as [Int64] {
                    var template = ProviderSession.template("\(name) \(seconds)")
                    template.contentModificationDate = FileTimestamp(seconds: seconds)
                    let made = try await session.create(template, content: content, fields: .contentModificationDate)
                    #expect(made.stillPending == [.contentModificationDate])
                    #expect(try await remote.content(of: "\(name) \(seconds)") == Data(content))
                }
            }
        }
    }

    @Test("DAV-17: one that was broken off goes on with the chunk at which it was, also in the next daemon")
    func goesOn() async throws {
        try await run { remote, session, directory in
            let count = Mutex(0)
            let content = try TestContent(bytes) {
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                // Two chunks are there by then.
                if number == 3 { throw BrokenOff() }
            }
            await #expect(throws: BrokenOff.self) {
                _ = try await session.create(ProviderSession.template("large"), source: content.source)
            }
            #expect(try await session.list().isEmpty)
            let first = uploads(directory)
            #expect(first.prefix(3) == ["MKCOL ", "PUT 00001", "PUT 00002"])
            let next = try await remote.session(session.manager)
            // Of what was changed meanwhile nothing old is taken.
            var other = bytes
            other[11 << 20] ^= 1
            _ = try await next.create(ProviderSession.template("large"), content: other)
            #expect(uploads(directory).dropFirst(first.count) == ["PROPFIND ", "PUT 00002", "PUT 00003", "MOVE .file"])
            #expect(try await remote.content(of: "large") == Data(other))
            #expect(journal(remote).records.isEmpty)
            await next.provider.invalidate()
        }
    }

    @Test("DAV-17: what others wrote meanwhile is not written over") func conditions() async throws {
        try await run { remote, session, directory in
            let provider = try #require(session.provider as? PathAddressedProvider)
            try await remote.write([1], to: "large")
            for condition in [RemoteCondition.absent, .unchanged(tag: [1])] {
                await #expect(throws: RemoteConditionFailure.self) {
                    try await provider.remote.write(bytes, to: RemotePath(["large"]), if: condition)
                }
            }
            #expect(try await remote.content(of: "large") == Data([1]))
        }
    }

    @Test("DAV-17: what another client writes just before the chunks are moved is not written over")
    func overtaken() async throws {
        try await run { remote, session, directory in
            let provider = try #require(session.provider as? PathAddressedProvider)
            let file = RemotePath(["large"])
            let made = try await provider.remote.write(bytes, to: file)
            try await self.fault("overtake/theirs", remote)
            await #expect(throws: RemoteConditionFailure.self) {
                try await provider.remote.write(bytes + [1], to: file, if: .unchanged(tag: made.tag))
            }
            #expect(try await remote.content(of: "large") == Data("theirs".utf8))
            #expect(journal(remote).records.isEmpty)
            // A server that refuses the tag that the file has is asked without it.
            let theirs = try await provider.remote.entry(at: file)
            try await self.fault("tagless/1", remote)
            try await provider.remote.write(bytes, to: file, if: .unchanged(tag: theirs.tag))
            #expect(try await remote.content(of: "large") == Data(bytes))
            #expect(uploads(directory).suffix(2) == ["MOVE .file", "MOVE .file"])
        }
    }

    private func fault(_ fault: String, _ remote: IdentifyingRemote) async throws {
        let base = try #require(HTTPURL(remote.url("")))
        try await remote.request("-X", "POST", "-d", "", "http://\(base.host):\(base.port)/faults/\(fault)")
    }

    @Test("DAV-17: an abandoned upload is deleted, and one that the server has deleted starts again")
    func abandoned() async throws {
        try await run { remote, session, directory in
            var old = ChunkRecord(
                folder: "yonder-old", target: "/nowhere", size: 1, chunkSize: 1,
                begun: FileTimestamp.now.seconds - 90_000)
            try journal(remote).save(old)
            let target = try #require(HTTPURL(remote.url("large"))).path
            old = ChunkRecord(
                folder: "yonder-lost", target: target, size: Int64(bytes.count),
                chunkSize: ChunkedUploads.chunkSize(for: Int64(bytes.count)), begun: FileTimestamp.now.seconds)
            try journal(remote).save(old)
            _ = try await session.create(ProviderSession.template("large"), content: bytes)
            #expect(uploads(directory).prefix(3).sorted() == ["DELETE ", "DELETE ", "PROPFIND "])
            #expect(journal(remote).records.isEmpty)
            #expect(try await remote.content(of: "large") == Data(bytes))
        }
    }

    @Test("DAV-29: what is newer waits for chunks that the server may be assembling, also after a restart")
    func mayBeAssembled() async throws {
        try await run { remote, session, directory in
            let first = try #require((session.provider as? PathAddressedProvider)?.remote)
            let file = RemotePath(["large"])
            let base = try #require(HTTPURL(remote.url("")))
            let server = "http://\(base.host):\(base.port)"
            try await remote.request("-X", "POST", "-d", "", "\(server)/faults/refuse/MOVE")
            await #expect(throws: FileProviderError.self) { try await first.write(bytes, to: file) }
            let record = try #require(journal(remote).records.first)

            let provider = try await remote.makeProvider(for: session.manager)
            let next = try #require((provider as? PathAddressedProvider)?.remote)
            func expectWait(_ body: () async throws -> Void) async {
                let error = await failure(of: body)
                #expect(error?.code == .providerDomainTemporarilyUnavailable, "\(String(describing: error))")
            }
            var other = bytes
            other[5] = 8
            for newer in [[3], other, bytes + [3]] as [[UInt8]] {
                await expectWait { try await next.write(newer, to: file) }
            }
            await expectWait { try await next.delete(file, kind: .file, if: .always) }
            await expectWait { _ = try await next.move(file, to: RemotePath(["other"]), kind: .file) }
            await expectWait { try await next.delete(.root, kind: .directory, if: .always) }

            // The server makes the move after all.
            try await remote.request(
                "-X", "MOVE", "-H", "Destination: \(remote.url("large"))", "-H", "OC-Total-Length: \(bytes.count)",
                "\(server)/remote.php/dav/uploads/user/\(record.folder)/.file")
            #expect(try await remote.content(of: "large") == Data(bytes))
            try await next.write([3], to: file)
            #expect(try await remote.content(of: "large") == Data([3]))
            #expect(journal(remote).records.isEmpty)
            await provider.invalidate()
        }
    }

    @Test(
        "DAV-17: an upload that the server forgets in the middle is sent anew, and nothing is missing because of that")
    func forgotten() async throws {
        try await run { remote, session, directory in
            let base = try #require(HTTPURL(remote.url("")))
            let uploads = "http://\(base.host):\(base.port)/remote.php/dav/uploads/user/"
            let content = try TestContent(bytes) { [journal = journal(remote)] in
                guard let folder = journal.records.first?.folder, journal.records.first?.digests.count == 1 else {
                    return
                }
                try #require(system("curl -s -X DELETE '\(uploads)\(folder)'") == 0)
            }
            let error = await #expect(throws: FileProviderError.self) {
                _ = try await session.create(ProviderSession.template("large"), source: content.source)
            }
            #expect(error?.code == .providerDomainTemporarilyUnavailable)
            _ = try await session.create(ProviderSession.template("large"), content: bytes)
            #expect(try await remote.content(of: "large") == Data(bytes))
        }
    }

    @Test("DAV-17: where no chunks are taken, or the address does not say whose they are, files go in one piece")
    func notTaken() async throws {
        #expect(OwnCloudAccount(of: try #require(HTTPURL("https://host/remote.php/webdav/"))) == nil)
        let account = OwnCloudAccount(
            of: try #require(HTTPURL("https://host/cloud/remote.php/dav/files/me%20too/a/b/")))
        #expect(account?.uploads.url.description == "https://host/cloud/remote.php/dav/uploads/me%20too/")
        #expect(ChunkedUploads.chunkSize(for: 25 << 20) == 10 << 20)
        #expect((1 << 40) / ChunkedUploads.chunkSize(for: 1 << 40) < 10_000)
        try await IdentifyingRemote.run { port, directory in
            let remote = try await IdentifyingRemote(port: port, in: directory, below: "dav/files/guest/")
            let session = try await remote.session()
            _ = try await session.create(ProviderSession.template("large"), content: bytes)
            #expect(uploads(directory) == ["MKCOL "] || uploads(directory) == [])
            #expect(try await remote.content(of: "large") == Data(bytes))
            await session.provider.invalidate()
        }
    }
}
