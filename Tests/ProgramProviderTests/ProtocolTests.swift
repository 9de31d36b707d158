import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Logging
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ProgramProvider

/// The examples of Docs/Protocol.md, in their order.
@Suite(.tags(.server)) struct ProtocolTests {
    private static let size = ThumbnailSize(width: 256, height: 256)

    @Test("the daemon sends the requests of the level paths, and understands its responses") func paths() async throws {
        try await replay("paths", levels: ["items", "paths"], requests: 17) { host, files, shared in
            let remote = ProgramRemote(
                host: host, files: files, features: { shared.features }, report: { _ in })
            try await run(remote)
            #expect(await eventually { shared.notices == [.changed] })
        }
    }

    @Test("the daemon sends the requests of the level items, and understands its responses") func items() async throws {
        try await replay("items", levels: ["items"], requests: 17) { host, files, shared in
            try await run(ProgramItemProvider(host: host, files: files) { shared.features })
            #expect(await eventually { shared.notices == [.resolved(.notAuthenticated)] })
        }
    }

    /// Runs calls against the examples of a level.
    private func replay(
        _ level: String, levels: [String], requests: Int,
        _ body: (ProgramHost, TransferFiles, Shared) async throws -> Void
    ) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        _ = try scratch.makeDirectory("transfer")
        let log = scratch["log"].string
        var environment = ProcessInfo.processInfo.environment
        environment["REPLAY_LOG"] = log
        environment["LEVEL"] = level
        environment["PROTOCOL"] = FilePath(#filePath).removingLastComponent().appending("../../Docs/Protocol.md").string
        var launch = ProgramHost.Launch(
            program: ServedByProgram.programs.appending("replay.py").string,
            environment: { [environment] in environment },
            parameters: {
                InitializeParameters(
                    levels: levels, source: "demo:somewhere", location: "somewhere", options: ["colour": "blue"],
                    secrets: ["token": "secret word"], directory: scratch["transfer"].string, readOnly: false)
            }, inactivityLimit: .seconds(20), directory: scratch["transfer"], logger: Logger(label: "test"))
        let shared = Shared()
        launch.onNotice = { shared.add($0) }
        launch.onStart = { shared.features = $0.features ?? ProgramFeatures() }
        let host = ProgramHost(launch)
        try await withCleanUp({ await host.close() }) {
            try await body(host, TransferFiles(in: scratch["transfer"]), shared)
        }
        let lines = try String(contentsOfFile: log, encoding: .utf8)
        #expect(lines == String(repeating: "same\n", count: requests), "\(lines)")
    }

    private func run(_ provider: ProgramItemProvider) async throws {
        let request = FileProviderRequest(reason: .lookup)
        #expect(try await provider.item(for: .rootContainer, request: request).kind == .directory)
        #expect(provider.features.changeFeed && provider.features.trash && provider.features.concurrentCalls == 8)
        let root = try provider.enumerator(for: .rootContainer, request: request)
        let first = try await root.enumerateItems(startingAt: .initial, suggestedPageSize: 1)
        let file = try #require(first.items.first)
        #expect(
            file.contentModificationDate?.nanosecondsSince1970 == 1_700_000_000_250_000_000 && file.permissions == 0o644
                && file.extendedAttributes == ["mime_type": Array("text".utf8)]
                && file.capabilities == ItemCapabilities.ordinary.union(.allowsTrashing))
        let second = try await root.enumerateItems(startingAt: try #require(first.nextPage), suggestedPageSize: 1)
        #expect(second.items.first?.symlinkTargetPath == "a.txt" && second.nextPage == nil)
        let workingSet = try provider.enumerator(for: .workingSet, request: request)
        let anchor = try #require(try await workingSet.currentSyncAnchor())
        let changes = try await workingSet.enumerateChanges(from: anchor, suggestedBatchSize: 100)
        #expect(changes.deleted == ["8"] && changes.anchor == SyncAnchor("4") && !changes.moreComing)
        let sink = CountingSink()
        _ = try await provider.fetchContents(
            for: "7", version: file.itemVersion.contentVersion, range: nil, request: request, into: sink)
        #expect(sink.count == 5)
        #expect(try await provider.quota() == RemoteQuota(free: 1000, total: 5000))
        #expect(provider.features.thumbnails)
        #expect(try await provider.thumbnail(of: "7", size: Self.size, reason: request.reason) == Array("hello".utf8))
        let error = await failure {
            _ = try await provider.thumbnail(of: "8", size: Self.size, reason: request.reason)
        }
        #expect(error?.code == .noSuchItem && error?.message == "no item 8")
        try await change(provider, in: try #require(changes.updated.first), request)
        await provider.importDidFinish()
    }

    private func change(
        _ provider: ProgramItemProvider, in directory: FileProviderItem, _ request: FileProviderRequest
    ) async throws {
        func template(_ number: Int, _ name: String, _ kind: ItemKind, size: Int64? = nil) -> FileProviderItem {
            FileProviderItem(
                itemIdentifier: ItemIdentifier("local-\(number)"), parentItemIdentifier: directory.itemIdentifier,
                filename: name, kind: kind, itemVersion: .beforeFirstSync, documentSize: size)
        }
        func create(_ item: FileProviderItem, _ contents: ContentSource?, _ options: CreateItemOptions) async throws
            -> ItemChange
        {
            var fields: ItemFields = [.filename, .parentItemIdentifier]
            if contents != nil { fields.formUnion([.contents, .contentModificationDate]) }
            return try await provider.createItem(
                basedOn: item, fields: fields, contents: contents, options: options, request: request)
        }
        var new = template(1, "b.txt", .file, size: 5)
        new.contentModificationDate = FileTimestamp(nanosecondsSince1970: 1_700_000_001_500_000_000)
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let sent = SentSteps()
        let made = try await create(new, sent.contents(Array("world".utf8), in: scratch), .mayAlreadyExist)
        #expect(sent.all == [2, 3])
        guard case .applied(var item, .contentModificationDate, false) = made else {
            Issue.record("\(made)")
            return
        }
        await expect(.filenameCollision, item) { _ = try await create(template(2, "b.txt", .directory), nil, []) }
        let refused = try await create(template(3, "core", .file, size: 3), nil, [.mayAlreadyExist, .recognizeOnly])
        #expect(refused == .refused(reason: "the remote has no such file"))
        func modify(_ fields: ItemFields, base: String, _ contents: ContentSource?) async throws -> ItemChange {
            try await provider.modifyItem(
                item, baseVersion: ItemVersion(contentVersion: base, metadataVersion: base), changedFields: fields,
                contents: contents, options: .failOnConflict, request: request)
        }
        try await withContent(Array("other".utf8)) { contents in
            await expect(.localVersionConflictingWithServer, item) {
                _ = try await modify(.contents, base: "4", contents)
            }
        }
        item.parentItemIdentifier = .trashContainer
        guard case .applied(let trashed, [], false) = try await modify(.parentItemIdentifier, base: "5", nil) else {
            Issue.record("it was not trashed")
            return
        }
        #expect(trashed.isTrashed && trashed.trashDate?.seconds == 1_700_000_005)
        try await provider.deleteItem(
            identifier: "10", baseVersion: trashed.itemVersion, options: .recursive, request: request)
    }

    private func expect(
        _ code: FileProviderError.Code, _ item: FileProviderItem, _ body: () async throws -> Void
    ) async {
        do {
            try await body()
            Issue.record("it succeeded")
        } catch {
            let error = error as? FileProviderError
            #expect(error?.code == code && error?.item?.itemIdentifier == item.itemIdentifier)
            // Without a word about capabilities it is as any other.
            #expect(error?.item?.capabilities == item.capabilities)
        }
    }

    private func run(_ remote: ProgramRemote) async throws {
        #expect(try await remote.entry(at: .root).kind == .directory)
        #expect(remote.traits.checksConditions && remote.traits.concurrentCalls == 8)
        let docs = RemotePath(["docs"])
        let first = try await remote.entries(in: docs, from: nil, limit: 2)
        #expect(first.entries.map(\.name) == ["a.txt", "sub"] && first.next == Array("sub".utf8))
        #expect(
            first.entries.first?.attributes.contentModificationDate
                == FileTimestamp(seconds: 1_700_000_000, nanoseconds: 250_000_000))
        let second = try await remote.entries(in: docs, from: first.next, limit: 2)
        #expect(second.entries.first?.attributes.symbolicLinkTarget == "a.txt" && second.next == nil)
        let sink = CountingSink()
        _ = try await remote.read(docs.appending("a.txt"), tag: first.entries.first?.tag, range: nil, into: sink)
        #expect(sink.count == 5)
        #expect(try await remote.quota() == RemoteQuota(free: 1000, total: 5000))
        #expect(remote.hasThumbnails)
        #expect(try await remote.thumbnail(of: docs.appending("a.txt"), size: Self.size) == Array("hello".utf8))
        #expect(try await remote.thumbnail(of: docs.appending("b.txt"), size: Self.size) == nil)
        let file = docs.appending("b.txt")
        let date = FileTimestamp(seconds: 1_700_000_001, nanoseconds: 500_000_000)
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let sent = SentSteps()
        let written = try await remote.write(
            sent.contents(Array("world".utf8), in: scratch), to: file,
            attributes: RemoteAttributes(contentModificationDate: date), if: .absent)
        #expect(written.size == 5 && written.isTagStrong && sent.all == [2, 3])
        await #expect(throws: RemoteConditionFailure.self) {
            try await withContent(Array("world".utf8)) {
                try await remote.write(
                    $0, to: file, attributes: RemoteAttributes(), if: .unchanged(tag: ProgramTag.bytes("1-9")))
            }
        }
        let new = RemotePath(["new"])
        _ = try await remote.makeDirectory(at: new, attributes: RemoteAttributes(permissions: 0o755))
        _ = try await remote.makeSymbolicLink(
            at: RemotePath(["link"]), to: "docs/b.txt", attributes: RemoteAttributes())
        let moved = try await remote.move(file, to: new.appending("c.txt"), kind: .file)
        #expect(moved.name == "c.txt")
        let set = try await remote.set(
            RemoteAttributes(permissions: 0o600), of: new.appending("c.txt"), kind: .file)
        #expect(set.notStored == .permissions)
        try await remote.delete(new.appending("c.txt"), kind: .file, if: .unchanged(tag: moved.tag))
        do {
            try await remote.delete(new, kind: .directory, if: .empty)
            Issue.record("a directory that is not empty was deleted")
        } catch let failure as RemoteConditionFailure { #expect(failure.present?.kind == .directory) }
        let error = await #expect(throws: FileProviderError.self) {
            _ = try await remote.entry(at: RemotePath(["gone"]))
        }
        #expect(error?.code == .noSuchItem && error?.message == "nothing is at gone")
    }

    private final class Shared: Sendable {
        private let state = Mutex((notices: [ProgramNotice](), features: ProgramFeatures()))
        var notices: [ProgramNotice] { state.withLock { $0.notices } }
        func add(_ notice: ProgramNotice) { state.withLock { $0.notices.append(notice) } }
        var features: ProgramFeatures {
            get { state.withLock { $0.features } }
            set { state.withLock { $0.features = newValue } }
        }
    }
}
