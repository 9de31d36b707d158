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

@Suite("Responses that are lost", .tags(.server))
struct LostResponseTests {
    @Test(
        "PATH-10: an upload without a response is recognized although the file was written before the loss was known",
        arguments: ["", "pathtags"], [3, 300 << 10])
    func writtenMeanwhile(_ habit: String, _ size: Int) async throws {
        try await PlainServer.withSession(habit, attempts: 1) { server, session async throws in
            let made = try await session.create(ProviderSession.template("file"), content: [1])
            let local = server.directory.path.appending("local")
            try Data(repeating: 7, count: size).write(to: URL(fileURLWithPath: local.string))
            let descriptor = try FileDescriptor.open(local, .readOnly)
            let isWritten = Atomic(false)
            let contents = ContentSource(descriptor: descriptor, size: Int64(size)) {
                if isWritten.load(ordering: .relaxed) { throw FileProviderError(.userCancelled) }
            }
            var item = made.item
            let date = FileTimestamp(seconds: 1_000_000_000, nanoseconds: 5)
            item.documentSize = Int64(size)
            item.contentModificationDate = date

            try await server.request(".lose")
            let upload = Task { [item] in
                try await session.provider.modifyItem(
                    item, baseVersion: made.item.itemVersion, changedFields: [.contents, .contentModificationDate],
                    contents: contents, options: .failOnConflict, request: session.request)
            }
            // The server has made the move, and has not answered it.
            #expect(await eventually { (try? await server.state())?.isLosing == false })
            isWritten.store(true, ordering: .relaxed)
            try await server.request(".release")
            _ = try? await upload.value

            let found = try await session.provider.item(for: made.item.itemIdentifier, request: session.request)
            #expect(found.documentSize == Int64(size))
            #expect(found.contentModificationDate == date)
        }
    }

    @Test(
        "PATH-10: a move that was made is found although its look-up was refused once", arguments: [401, 403, 423, 507])
    func refusedLookUp(_ status: Int) async throws {
        try await PlainServer.withSession(attempts: 1) { server, session async throws in
            let made = try await session.create(ProviderSession.template("old", kind: .directory))
            let item = made.item.renamed("new")
            try await server.request(".refuse=\(status)")
            do {
                _ = try await session.provider.modifyItem(
                    item, baseVersion: made.item.itemVersion, changedFields: [.filename], contents: nil,
                    options: .failOnConflict, request: session.request)
                Issue.record("the look-up was not refused")
            } catch {
                #expect(OperationLedger.isOutcomeUnknown(after: error), "\(error)")
            }
            let found = try await session.provider.item(for: made.item.itemIdentifier, request: session.request)
            #expect(found.filename == "new")
        }
    }

    @Test(
        "PATH-10: an upload that is in flight when the daemon is killed is recognized by the next one",
        arguments: ["", "pathtags"], [3, 300 << 10])
    func inFlight(_ habit: String, _ size: Int) async throws {
        try await PlainServer.withSession(habit, attempts: 1) { server, session async throws in
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            let content = try TestContent([UInt8](repeating: 7, count: size))
            let date = FileTimestamp(seconds: 1_000_000_000, nanoseconds: 5)
            try await server.request(".lose")
            let upload = Task {
                try await remote.write(
                    content.source, to: RemotePath(["file"]),
                    attributes: RemoteAttributes(contentModificationDate: date), if: .always)
            }
            // The server has made the move, and has not answered it. The next daemon reads what this one has stored.
            #expect(await eventually { (try? await server.state())?.isLosing == false })
            let next = try server.session()
            let found = try await #require(next.webDAV).entry(at: RemotePath(["file"]))
            #expect(found.size == Int64(size))
            #expect(found.attributes.contentModificationDate == date)
            await next.provider.invalidate()
            try await server.request(".release")
            _ = try? await upload.value
        }
    }

    @Test(
        "PATH-10: content of a refused upload is not taken for another client's with the same tag or date",
        arguments: ["", "pathtags"])
    func refused(_ habit: String) async throws {
        try await PlainServer.withSession(habit) { _, session async throws in
            let remote = try #require(session.webDAV)
            let content = try TestContent([UInt8](repeating: 7, count: 300 << 10))
            let attributes = RemoteAttributes(contentModificationDate: FileTimestamp(seconds: 7, nanoseconds: 5))
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            await #expect(throws: RemoteConditionFailure.self) {
                _ = try await remote.write(
                    content.source, to: RemotePath(["file"]), attributes: attributes, if: .unchanged(tag: [1]))
            }
            let twin = try await remote.write(
                content.source, to: RemotePath(["twin"]), attributes: attributes, if: .always)
            let records = remote.server.lostUploads.contents
            #expect(records.date("file", tag: twin.tag) == nil)
            #expect(records.candidates("file", size: 300 << 10, tag: twin.tag).isEmpty)
        }
    }
}
