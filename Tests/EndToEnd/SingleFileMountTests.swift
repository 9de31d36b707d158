import Daemon
import FileProvider
import Logging
import SingleFile
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The example of a remote that knows only paths, mounted.
    @Suite struct SingleFileMount {
        @Test(
            "a remote of a few calls is a whole mount: it is written, renamed, changed behind its back, and read again")
        func worksAsAMount() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let file = directory["library.json"].string
            try await Self.run(file, in: directory, replica: "first") { mount, host in
                let written = try await Command.shell(
                    """
                    cd \(mount) && mkdir -p a/b && printf one > a/b/one && cp a/b/one two && mv a c \
                        && touch -d @1700000000 two && git init -q repo && rm -rf repo
                    """)
                #expect(written.status == 0, "\(written.errors)")
                #expect(try await host.engine.waitUntilSynced(within: .seconds(60)))
            }
            // Another replica knows only what the file holds.
            try await Self.run(file, in: directory, replica: "second") { mount, host in
                let read = try await Command.shell(
                    "cd \(mount) && find . | LC_ALL=C sort && cat c/b/one && stat -c ' %Y' two")
                #expect(read.output == ".\n./c\n./c/b\n./c/b/one\n./two\none 1700000000\n")
            }
        }

        private static func run(
            _ file: String, in directory: TemporaryDirectory, replica: String,
            _ test: (String, DomainHost) async throws -> Void
        ) async throws {
            let mountpoint = try directory.makeDirectory("mount of \(replica)")
            let host = try DomainHost(
                domain: FileProviderDomain(identifier: "test", source: file), directory: directory[replica],
                mountpoint: mountpoint, options: DomainOptions(),
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            ) { manager in
                try SingleFileRemote.provider(for: manager)
            }
            try await withCleanUp({ await host.stop() }) { try await test("'\(mountpoint.string)'", host) }
        }
    }
}
