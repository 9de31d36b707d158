import FileProvider
import FileProviderTesting
import Foundation
import Logging
import PathAddressing
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ProgramProvider

/// The examples of Docs/Protocol.md, in their order.
@Suite(.tags(.server)) struct ProtocolTests {
    @Test("the daemon sends the requests of the specification, and understands its responses") func replays()
        async throws
    {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        _ = try scratch.makeDirectory("transfer")
        let log = scratch["log"].string
        var environment = ProcessInfo.processInfo.environment
        environment["REPLAY_LOG"] = log
        environment["PROTOCOL"] = FilePath(#filePath).removingLastComponent().appending("../../Docs/Protocol.md").string
        var launch = ProgramHost.Launch(
            program: ServedByProgram.programs.appending("replay.py").string,
            environment: { [environment] in environment },
            parameters: {
                InitializeParameters(
                    source: "demo:somewhere", location: "somewhere", options: ["colour": "blue"],
                    secrets: ["token": "secret word"], directory: scratch["transfer"].string, readOnly: false)
            }, inactivityLimit: .seconds(20), directory: scratch["transfer"], logger: Logger(label: "test"))
        let shared = Shared()
        launch.onChange = { shared.changed() }
        launch.onFeatures = { shared.features = $0 }
        let remote = ProgramRemote(
            host: ProgramHost(launch), files: TransferFiles(in: scratch["transfer"]), features: { shared.features },
            report: { _ in })
        do {
            try await run(remote)
        } catch {
            await remote.close()
            throw error
        }
        #expect(await eventually { shared.changeCount == 1 })
        await remote.close()
        let lines = try String(contentsOfFile: log, encoding: .utf8)
        #expect(lines == String(repeating: "same\n", count: 15), "\(lines)")
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
        let file = docs.appending("b.txt")
        let date = FileTimestamp(seconds: 1_700_000_001, nanoseconds: 500_000_000)
        let written = try await withContent("world") {
            try await remote.write(
                $0, to: file, attributes: RemoteAttributes(contentModificationDate: date), if: .absent)
        }
        #expect(written.size == 5 && written.isTagStrong)
        await #expect(throws: RemoteConditionFailure.self) {
            try await withContent("world") {
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
        do {
            _ = try await remote.entry(at: RemotePath(["gone"]))
            Issue.record("there is something")
        } catch let error as FileProviderError {
            #expect(error.code == .noSuchItem && error.message == "nothing is at gone")
        }
    }

    private func withContent<Value>(_ text: String, _ body: (ContentSource) async throws -> Value) async throws -> Value
    {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let file = try FileDescriptor.open(try scratch.makeFile("content", Array(text.utf8)), .readOnly)
        defer { try? file.close() }
        return try await body(ContentSource(descriptor: file, size: Int64(text.utf8.count)))
    }

    private final class Shared: Sendable {
        private let state = Mutex((changes: 0, features: ProgramFeatures()))
        var changeCount: Int { state.withLock { $0.changes } }
        func changed() { state.withLock { $0.changes += 1 } }
        var features: ProgramFeatures {
            get { state.withLock { $0.features } }
            set { state.withLock { $0.features = newValue } }
        }
    }
}
