import Control
import Foundation
import Logging
import Syscalls
import SystemPackage
import TestSupport
import Testing

/// What may lie where the socket is wanted, and who may listen there.
@Suite struct SocketPlaceTests {
    private struct Nothing: ControlService {
        func perform(
            _ command: ControlCommand, for peer: ControlPeer, progress: @escaping @Sendable (ControlEvent) -> Void,
            part: @escaping @Sendable (ControlResult) async throws -> Void
        ) async throws -> ControlResult { .done }
    }

    private func listen(at path: String) async throws -> ControlServer {
        try await ControlServer(
            at: path, userIdentifier: Machine.userIdentifier, service: Nothing(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Runs a server for as long as a test asks it.
    private func serving(at path: String, _ test: (ControlServer) async throws -> Void) async throws {
        let server = try await listen(at: path)
        let task = Task { try await server.run() }
        try await withCleanUp({ await server.close() }) { try await test(server) }
        task.cancel()
        _ = await task.result
    }

    private func withDirectory(_ test: (TemporaryDirectory) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await test(directory)
    }

    /// Everything below a directory, with what files say.
    private func look(_ directory: TemporaryDirectory) async throws -> String {
        try await Command.shell(
            "cd \"$1\" && find . -printf '%p %y %i %m %l\\n' | sort && find . -type f -exec cat {} +",
            directory.path.string
        ).output
    }

    @Test(
        "SOCKET-2: what is no dead socket of this user's is not removed to make room for the socket",
        arguments: [
            ("directory", "mkdir -p place/inner && echo text > place/inner/file"),
            ("file", "echo text > place"),
            ("link to a file", "echo text > file && ln -s file place"),
            ("link to nothing", "ln -s nowhere place"),
            ("FIFO", "mkfifo place"),
        ])
    func keepsWhatIsThere(kind: String, line: String) async throws {
        try await withDirectory { directory in
            let made = try await Command.shell("cd \"$1\" && " + line, directory.path.string)
            try #require(made.status == 0, "\(made.errors)")
            let before = try await look(directory)
            let error = await #expect(throws: ControlError.self) {
                _ = try await listen(at: directory["place"].string)
            }
            #expect(error?.code == .failed)
            #expect(error?.message.contains("not a socket") == true, "\(error?.message ?? "")")
            #expect(try await look(directory) == before)
        }
    }

    @Test("SOCKET-2: a socket that another program listens on, by its stream or its datagrams, stays")
    func keepsLiveSockets() async throws {
        try await withDirectory { directory in
            for kind in ["STREAM", "DGRAM"] {
                let path = directory[kind].string
                let program = try await BackgroundProgram(
                    "python3", "-c",
                    """
                    import socket, sys, time
                    s = socket.socket(socket.AF_UNIX, socket.SOCK_\(kind))
                    s.bind(sys.argv[1])
                    if sys.argv[2] == 'STREAM': s.listen()
                    open(sys.argv[1] + '.ready', 'w')
                    time.sleep(60)
                    """, path, kind)
                defer { program.kill() }
                #expect(await eventually { FileManager.default.fileExists(atPath: path + ".ready") })
                let error = await #expect(throws: ControlError.self) { _ = try await listen(at: path) }
                #expect(error?.code == (kind == "STREAM" ? .alreadyRunning : .failed))
                #expect(try FileStatus(at: FilePath(path)).isSocket)
            }
        }
    }

    @Test("SOCKET-2: a dead socket of this user's is replaced, one of another user's is not")
    func replacesDeadSockets() async throws {
        try await withDirectory { directory in
            let path = directory["socket"].string
            let die = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
            #expect(try await Command.python(die, path).status == 0)
            try await serving(at: path) { _ async throws in
                #expect(try await ControlClient(socket: path).perform(.ping) == .done)
            }
            guard FUSEAvailability.isRoot else { return }
            #expect(try await Command.shell("python3 -c \"$1\" \"$2\" && chown 65534 \"$2\"", die, path).status == 0)
            let error = await #expect(throws: ControlError.self) { _ = try await listen(at: path) }
            #expect(error?.code == .notPermitted)
            #expect(try FileStatus(at: FilePath(path)).isSocket)
        }
    }

    @Test("SOCKET-2: a server that ends removes its own socket, and nothing that has taken its place")
    func removesItsOwn() async throws {
        try await withDirectory { directory in
            let path = directory["socket"].string
            try await serving(at: path) { _ in }
            #expect(!FileManager.default.fileExists(atPath: path))
            try await serving(at: path) { _ in
                try await Command.shell("rm \"$1\" && mkdir \"$1\" && echo text > \"$1/file\"", path).expectSuccess()
            }
            #expect(FileManager.default.contents(atPath: path + "/file") == Data("text\n".utf8))
        }
    }

    @Test(
        "SOCKET-3: a client sends nothing to a socket on which another user listens",
        .enabled("only root can play another user") { FUSEAvailability.isRoot })
    func sendsNothingToOthers() async throws {
        try await withDirectory { directory in
            #expect(try await Command.run("chmod", "1777", directory.path.string).status == 0)
            let path = directory["socket"].string
            let program = try await BackgroundProgram(
                "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", "env",
                // One of root's own could not be run.
                "PATH=/usr/local/bin:/usr/bin:/bin", "python3", "-c",
                """
                import os, socket, sys
                s = socket.socket(socket.AF_UNIX)
                s.bind(sys.argv[1])
                os.chmod(sys.argv[1], 0o777)
                s.listen()
                open(sys.argv[1] + '.ready', 'w')
                heard = b''
                peer, _ = s.accept()
                while part := peer.recv(65536): heard += part
                open(sys.argv[1] + '.heard', 'wb').write(heard)
                """, path)
            defer { program.kill() }
            #expect(await eventually { FileManager.default.fileExists(atPath: path + ".ready") })
            var arguments = MountArguments(source: "webdav://host/", directory: "/mnt", name: nil)
            arguments.credentials = GivenCredentials(secrets: ["user": "user", "password": "secret word"])
            let command = ControlCommand.mount(arguments)
            let error = await #expect(throws: ControlError.self) {
                try await ControlClient(socket: path).perform(command)
            }
            #expect(error?.code == .notPermitted)
            #expect(error?.message.contains("65534") == true, "\(error?.message ?? "")")
            #expect(await program.ends())
            #expect(FileManager.default.contents(atPath: path + ".heard") == Data())
        }
    }
}
