import FileProvider
import FileProviderPaths
import Logging
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import RcloneProvider

@Suite(.tags(.server), .enabled(if: RcloneFolder.isInstalled)) struct RcloneLargeListingTests {
    private final class Answers: Sendable {
        let count = Mutex(0)
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
}
