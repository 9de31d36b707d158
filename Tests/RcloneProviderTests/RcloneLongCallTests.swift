import FileProvider
import FileProviderPaths
import FileProviderTesting
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
    }

    @Test("RCLONE-12: a directory is listed however long that takes, as long as the backend answers for another name")
    func takesLong() async throws {
        let server = try await ScriptedServer(program: "Support/Programs/unsized_files.py", ["6"])
        defer { server.stop() }
        let folder = try await RcloneFolder()
        let source = "rclone::http,url='http://127.0.0.1:\(server.port)/':"
        let (environment, directory) = (folder.environment, folder.directory["remote"])
        let usual = try RcloneProviderFactory.remote(source, folder.settings, in: directory, nil) { _ in }
        var launch = RcloneSession.Launch(
            program: "rclone", environment: { environment }, directory: directory.string,
            remote: usual.source.remote, logger: Logger(label: "test"))
        launch.stallTimeout = .seconds(4)
        let remote = RcloneRemote(
            host: RcloneHost(launch), source: usual.source, files: usual.files, features: nil,
            checkInterval: .milliseconds(500), report: { _ in }, onFeatures: { _ in })
        let answers = Answers()
        let context = CallContext(
            isUrgent: { true }, wait: { _ in }, answered: { answers.count.withLock { $0 += 1 } })
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
    @Test("RCLONE-12: an upload and the removal of a directory are not given up because rclone tells of no progress")
    func changes() async throws {
        let folder = try await RcloneFolder()
        let remote = try folder.remote()
        let waits = Waits()
        let context = CallContext(
            isUrgent: { true }, wait: { isWaiting in waits.count.withLock { $0 += isWaiting ? 1 : 0 } })
        try await withCleanUp({
            await remote.close()
            await folder.dispose()
        }) {
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
}
