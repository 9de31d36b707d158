import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Logging
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import RcloneProvider

@Suite(.tags(.server), .enabled(if: RcloneFolder.isInstalled)) struct RcloneLongCallTests {
    private final class Answers: Sendable {
        let count = Mutex(0)
    }

    private final class Waits: Sendable {
        let count = Mutex(0)
        var all: Int { count.withLock { $0 } }
        /// One whose waits are counted.
        var context: CallContext {
            CallContext(
                urgency: CallUrgency(true), wait: { [self] isWaiting in count.withLock { $0 += isWaiting ? 1 : 0 } })
        }
    }

    /// A remote whose rclone is started as the test wants it.
    private static func remote(
        in folder: RcloneFolder, source: String, checkInterval: Duration = .seconds(10),
        _ change: (inout RcloneSession.Launch) -> Void
    ) throws -> RcloneRemote {
        let (environment, directory) = (folder.environment, folder.directory["remote"])
        let usual = try RcloneProviderFactory.remote(source, folder.settings, in: directory, nil) { _ in }
        var launch = RcloneSession.Launch(
            program: environment["YONDER_RCLONE"] ?? "rclone", environment: { environment },
            directory: directory.string, remote: usual.source.remote, logger: Logger(label: "test"))
        change(&launch)
        return RcloneRemote(
            host: RcloneHost(launch), source: usual.source, files: usual.files, features: nil,
            checkInterval: checkInterval, report: { _ in }, onFeatures: { _ in })
    }

    @Test("RCLONE-12: a directory is listed however long that takes, as long as the backend answers for another name")
    func takesLong() async throws {
        let server = try await ScriptedServer(program: "Support/Programs/unsized_files.py", ["6"])
        defer { server.stop() }
        let folder = try await RcloneFolder()
        let source = "rclone::http,url='http://127.0.0.1:\(server.port)/':"
        let remote = try Self.remote(in: folder, source: source, checkInterval: .milliseconds(500)) {
            $0.stallTimeout = .seconds(4)
        }
        let answers = Answers()
        let context = CallContext(
            urgency: CallUrgency(true), wait: { _ in }, answered: { answers.count.withLock { $0 += 1 } })
        try await withCleanUp({
            await remote.close()
            await folder.dispose()
        }) {
            _ = try await remote.features()
            let listing = try await CallContext.$current.withValue(context) {
                try await remote.entries(in: .root, from: nil, limit: 10)
            }
            #expect(listing.entries.map(\.name) == ["sized"])
            // One is that of the listing.
            let seen = answers.count.withLock { $0 }
            #expect(seen > 2)
        }
    }

    @Test("RCLONE-12: that the backend cannot be reached is no progress of a listing") func unreachableBackend()
        async throws
    {
        let server = try await ScriptedServer(program: "Support/Programs/unsized_files.py", ["6", "reset"])
        defer { server.stop() }
        let folder = try await RcloneFolder()
        let source = "rclone::http,url='http://127.0.0.1:\(server.port)/':"
        let remote = try Self.remote(in: folder, source: source, checkInterval: .milliseconds(500)) { _ in }
        let answers = Answers()
        let context = CallContext(
            urgency: CallUrgency(true), wait: { _ in }, answered: { answers.count.withLock { $0 += 1 } })
        try await withCleanUp({
            await remote.close()
            await folder.dispose()
        }) {
            _ = try await remote.features()
            let listing = try await CallContext.$current.withValue(context) {
                try await remote.entries(in: .root, from: nil, limit: 10)
            }
            #expect(listing.entries.map(\.name) == ["sized"])
            // That of the listing, and one while rclone asks for the sizes.
            let seen = answers.count.withLock { $0 }
            #expect((1...2).contains(seen))
        }
    }

    @Test("RCLONE-12: an upload and the removal of a directory are not given up because rclone tells of no progress")
    func changes() async throws {
        let waits = Waits()
        let context = waits.context
        try await RcloneFolder.withRemote { _, remote in
            let directory = RemotePath(["directory"])
            _ = try await remote.makeDirectory(at: directory, attributes: RemoteAttributes())
            try await CallContext.$current.withValue(context) {
                _ = try await withContent(Array("mine".utf8)) {
                    try await remote.write(
                        $0, to: directory.appending("file"), attributes: RemoteAttributes(), if: .absent)
                }
            }
            // It is sent under a hidden name, and moved.
            let first = waits.all
            #expect(first >= 2)
            try await CallContext.$current.withValue(context) {
                try await remote.delete(directory, kind: .directory, if: .always)
            }
            #expect(waits.all > first)
        }
    }

    @Test("RCLONE-13: what is shown as sent is what rclone has sent", .timeLimit(.minutes(2)))
    func progress() async throws {
        // About five seconds for the file.
        let folder = try await RcloneFolder(program: "exec \"$RCLONE\" \"$@\" --bwlimit 1M")
        let remote = try folder.remote()
        try await withCleanUp({
            await remote.close()
            await folder.dispose()
        }) {
            let size = 6 << 20
            // Nil for an answer.
            let events = Mutex<[Int64?]>([])
            let context = CallContext(
                urgency: CallUrgency(true), wait: { _ in }, answered: { events.withLock { $0.append(nil) } })
            let file = try folder.directory.makeFile("content", [UInt8](repeating: 7, count: size))
            let contents = ContentSource(
                descriptor: try FileDescriptor.open(file, .readOnly, options: .closeOnExec), size: Int64(size),
                progress: { count in events.withLock { if count > 0 { $0.append(count) } } })
            let made = try await CallContext.$current.withValue(context) {
                try await remote.write(
                    contents, to: RemotePath(["file"]), attributes: RemoteAttributes(), if: .absent)
            }
            #expect(made.size == Int64(size))
            let seen = events.withLock { $0 }
            #expect(seen.compactMap { $0 }.reduce(0, +) == Int64(size))
            let steps = seen.indices.filter { seen[$0] != nil }
            try #require(steps.count > 2, "\(seen)")
            // What rclone answers to the question in between is no progress.
            #expect(steps[1] == steps[0] + 1, "\(seen)")
        }
    }

    @Test("RCLONE-14: the question for the root does not wait behind calls without an answer") func questionsGoFirst()
        async throws
    {
        let server = try await ScriptedServer(program: "Support/Programs/unsized_files.py", ["8"])
        defer { server.stop() }
        let folder = try await RcloneFolder()
        let source = "rclone::http,url='http://127.0.0.1:\(server.port)/':"
        let remote = try Self.remote(in: folder, source: source) { _ in }
        try await withCleanUp({
            await remote.close()
            await folder.dispose()
        }) {
            _ = try await remote.features()
            let waits = Waits()
            let calls = (0..<40).map { _ in
                Task { try await CallContext.$current.withValue(waits.context) { try await remote.list(.root) } }
            }
            defer { for call in calls { call.cancel() } }
            #expect(await eventually { waits.all > 0 })
            let waitsOfQuestion = Waits()
            let root = try await CallContext.$current.withValue(waitsOfQuestion.context) {
                try await remote.entry(at: .root)
            }
            #expect(root.kind == .directory && waitsOfQuestion.all == 0)
        }
    }

    @Test("RCLONE-6: a program that hangs when it starts is ended, and the error says so", .timeLimit(.minutes(1)))
    func hangingStart() async throws {
        let folder = try await RcloneFolder(program: "exec sleep 600")
        let remote = try Self.remote(in: folder, source: folder.domain.source) { $0.longestStart = .seconds(1) }
        try await withCleanUp({
            await remote.close()
            await folder.dispose()
        }) {
            let error = await failure { _ = try await remote.entry(at: .root) }
            #expect(error?.code == .serverUnreachable && error?.message.contains("it says nothing") == true)
        }
    }

    @Test("RCLONE-5: a process that has ended leaves no socket behind") func sockets() async throws {
        // As version 1.61 begins.
        let program = """
            [ $1 = version ] && { echo rclone v1.61.0; exit; }
            case $4 in unix://*) ;; *) exit 1 ;; esac
            touch "${4#unix://}"
            touch "$(dirname "${4#unix://}")/started"
            exit 1
            """
        try await RcloneFolder.withRemote(program: program) { folder, remote in
            let error = await failure { _ = try await remote.entry(at: .root) }
            #expect(error?.code == .serverUnreachable)
            let directory = folder.directory["remote"].string
            #expect((try? FileManager.default.contentsOfDirectory(atPath: directory)) == ["started"])
        }
    }

    @Test("RCLONE-14: the root is asked for beside a call that stands still") func isAsked() async throws {
        let folder = try await RcloneFolder()
        let manager = TestManager(domain: folder.domain, stateDirectory: folder.stateDirectory)
        let provider = try await folder.makeProvider(for: manager)
        #expect(provider.features.isAskedBesideCalls)
        await provider.invalidate()
        await folder.dispose()
    }

    private static func send(_ bytes: [UInt8], to path: RemotePath, on remote: RcloneRemote) async throws -> RemoteEntry
    {
        try await withContent(bytes) {
            try await remote.write($0, to: path, attributes: RemoteAttributes(), if: .always)
        }
    }

    @Test(
        "RCLONE-12: a process that has stopped answering is ended, and the upload is made again with the next one",
        .timeLimit(.minutes(3)))
    func stoppedProgram() async throws {
        // About half a minute for the file.
        let folder = try await RcloneFolder(program: "exec \"$RCLONE\" \"$@\" --bwlimit 256k")
        let remote = try Self.remote(in: folder, source: folder.domain.source) {
            $0.probeInterval = .milliseconds(300)
            $0.probePatience = .seconds(6)
        }
        try await withCleanUp({
            await remote.close()
            await folder.dispose()
        }) {
            let path = RemotePath(["file"])
            let content = (0..<8 << 20).map { UInt8(truncatingIfNeeded: $0 >> 8) }
            let upload = Task { try await Self.send(content, to: path, on: remote) }
            let hasBegun = try await eventually(within: .seconds(30)) {
                try !FileManager.default.contentsOfDirectory(atPath: folder.root.string).isEmpty
            }
            #expect(hasBegun)
            let configuration = folder.directory["rclone.conf"].string
            let stopped = try RcloneSafetyTests.processes(with: configuration)
            // One that answers is not ended.
            try await Task.sleep(for: .seconds(2))
            #expect(try RcloneSafetyTests.processes(with: configuration) == stopped)
            #expect(stopped.count == 1)
            for process in stopped { kill(process, SIGSTOP) }
            let error = await failureCode { _ = try await upload.value }
            #expect(error == .serverUnreachable)
            let isEnded = await eventually {
                (try? RcloneSafetyTests.processes(with: configuration))?.contains { stopped.contains($0) } == false
            }
            #expect(isEnded)
            #expect(try await Self.send(Array("again".utf8), to: path, on: remote).size == 5)
        }
    }
}
