import FUSE
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// A file system in memory, mounted in a directory of its own for as long as a test runs.
///
/// The mount is touched by other processes only: when something goes wrong they hang, and not the tests.
struct Mounted {
    let fileSystem: MemoryFileSystem
    let session: Session
    let directory: TemporaryDirectory
    let path: FilePath

    subscript(_ name: String) -> String { path.appending(name).string }

    /// Mounts, runs the test, and unmounts whatever the test did.
    static func run(
        _ adjust: (inout SessionOptions) -> Void = { _ in }, _ test: (Mounted) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = try directory.makeDirectory("mount")
        let fileSystem = MemoryFileSystem(owner: try directory.owner)
        var options = SessionOptions(source: "//test/memory", subtype: "test")
        options.threads = 4
        adjust(&options)
        let session = try Session(options: options)
        try session.mount(at: path)
        try await withCleanUp({ await end(session, fileSystem) }) {
            try session.serve(fileSystem)
            fileSystem.state.withLock { $0.session = session }
            try await test(Mounted(fileSystem: fileSystem, session: session, directory: directory, path: path))
        }
        #expect(!session.isMounted)
    }

    private static func end(_ session: Session, _ fileSystem: MemoryFileSystem) async {
        // Nothing waits any more that a test has left waiting.
        fileSystem.state.withLock { state in
            state.parked = []
            state.parkedLookups = []
        }
        do { try session.unmount() } catch { Issue.record("not unmounted: \(error)") }
        if await eventually({ session.hasEnded }) { return }
        Issue.record("the session did not end by unmounting")
        session.abort()
    }
}
