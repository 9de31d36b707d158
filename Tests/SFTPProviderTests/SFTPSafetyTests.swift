import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import SFTPProvider

@Suite(.tags(.server), .enabled(if: SFTPFolder.isInstalled)) struct SFTPSafetyTests {
    private static let plain = SFTPFolder.program + " -P posix-rename,fsync,statvfs,lsetstat"

    private static func remote(_ folder: SFTPFolder) throws -> SFTPRemote {
        let environment = folder.environment
        return try SFTPProviderFactory.remote(folder.domain.source) { environment }
    }

    /// A file that another client has written since it was looked up; the condition is that it has not.
    private static func rewrittenFile(
        on server: String
    ) async throws -> (folder: SFTPFolder, remote: SFTPRemote, path: RemotePath, tag: [UInt8]) {
        let folder = try SFTPFolder(server)
        let remote = try Self.remote(folder)
        try await folder.write(Array("old".utf8), to: "file")
        let path = RemotePath(["file"])
        let old = try await remote.entry(at: path).tag
        try await folder.write(Array("another's".utf8), to: "file")
        return (folder, remote, path, old)
    }

    @Test("SFTP-2: others' writes stay, and no hidden file is left", arguments: [SFTPFolder.program, plain])
    func othersWritesStay(_ server: String) async throws {
        let (folder, remote, path, old) = try await Self.rewrittenFile(on: server)
        defer { folder.directory.remove() }
        for condition in [RemoteCondition.unchanged(tag: old), .absent] {
            await #expect(throws: RemoteConditionFailure.self) {
                try await withContent(Array("mine".utf8)) {
                    try await remote.write($0, to: path, attributes: RemoteAttributes(), if: condition)
                }
            }
        }
        #expect(try String(contentsOfFile: folder["file"], encoding: .utf8) == "another's")
        let now = try await remote.entry(at: path)
        _ = try await withContent(Array("mine".utf8)) {
            try await remote.write($0, to: path, attributes: RemoteAttributes(), if: .unchanged(tag: now.tag))
        }
        #expect(try String(contentsOfFile: folder["file"], encoding: .utf8) == "mine")
        #expect(
            await eventually { (try? FileManager.default.contentsOfDirectory(atPath: folder.root.string)) == ["file"] })
        await remote.close()
    }

    @Test(
        "SFTP-2: a file that is written between the check and its removal stays",
        arguments: [SFTPFolder.program, plain])
    func writtenBeforeItsRemoval(_ server: String) async throws {
        let (folder, remote, path, old) = try await Self.rewrittenFile(on: server)
        defer { folder.directory.remove() }
        await #expect(throws: RemoteConditionFailure.self) {
            try await remote.connection.changing { try await remote.removeUnchanged(path, old, $0) }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.root.string) == ["file"])
        #expect(try String(contentsOfFile: folder["file"], encoding: .utf8) == "another's")
        let now = RemoteCondition.unchanged(tag: try await remote.entry(at: path).tag)
        try await remote.delete(path, kind: .file, if: now)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.root.string) == [])
        await remote.close()
    }

    @Test(
        "SFTP-4: what is wrong with a connection is said in words",
        arguments: [
            ("echo 'me@server: Permission denied (publickey).' >&2; exit 255", FileProviderError.Code.notAuthenticated),
            ("echo 'Host key verification failed.' >&2; exit 255", .notAuthenticated),
            ("echo 'ssh: connect to host server port 22: Connection refused' >&2; exit 255", .serverUnreachable),
            ("echo Welcome to this server", .malformedResponse),
            // The words are looked for in the language that they are known in.
            ("[ $LC_ALL = C ] && echo 'Host key verification failed.' >&2; exit 255", .notAuthenticated),
        ])
    func connectionFailures(_ words: String, _ code: FileProviderError.Code) async throws {
        let folder = try SFTPFolder("sh -c \"\(words)\"")
        defer { folder.directory.remove() }
        let remote = try Self.remote(folder)
        let error = await #expect(throws: FileProviderError.self) { try await remote.entry(at: .root) }
        #expect(error?.code == code)
        await remote.close()
    }

    @Test("SFTP-4: a session that has ended is opened again")
    func sessionsAreOpenedAgain() async throws {
        let folder = try SFTPFolder()
        defer { folder.directory.remove() }
        let remote = try Self.remote(folder)
        _ = try await remote.entry(at: .root)
        try await remote.connection.session().close()
        #expect(try await remote.entry(at: .root).kind == .directory)
        await remote.close()
    }

    @Test("SFTP-4: a session ends whose server has stopped answering, and one without requests does not")
    func silentServer() async throws {
        // It agrees on the version, answers one request with status 0, and then nothing more.
        let server = """
            import os, struct, sys, time
            def message():
                length = struct.unpack(">I", os.read(0, 4))[0]
                return os.read(0, length)
            message()
            os.write(1, struct.pack(">IBI", 5, 2, 3))
            number = message()[1:5]
            os.write(1, struct.pack(">IB", 17, 101) + number + struct.pack(">III", 0, 0, 0))
            time.sleep(60)
            """
        let session = try await SFTPSession.open(
            ["/usr/bin/env", "python3", "-c", server], environment: [:], host: "server", patience: .seconds(2))
        defer { session.close() }
        let answers = Atomic<Int>(0)
        let context = CallContext(
            urgency: CallUrgency(true), wait: { _ in }, answered: { answers.add(1, ordering: .relaxed) })
        let failure = try await CallContext.$current.withValue(context) {
            _ = try await session.request(SFTPMessage.remove, [Array("a".utf8)])
            // Longer than its patience, in which the program had to start.
            try await Task.sleep(for: .seconds(3))
            #expect(session.isOpen)
            return await #expect(throws: FileProviderError.self) {
                _ = try await session.request(SFTPMessage.remove, [Array("a".utf8)])
            }
        }
        // An answer is progress of the call (PATH-20).
        #expect(answers.load(ordering: .relaxed) == 1)
        #expect(failure?.code == .serverUnreachable && !session.isOpen, "\(String(describing: failure))")
    }

    @Test("SFTP-4: a program that does not end when its session does is killed") func stubbornProgram() async throws {
        let notes = try TemporaryDirectory()
        defer { notes.remove() }
        let server = """
            import os, signal, struct, sys, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            with open(sys.argv[1], "w") as file:
                file.write(str(os.getpid()))
            os.read(0, 9)
            os.write(1, struct.pack(">IBI", 5, 2, 3))
            time.sleep(600)
            """
        let session = try await SFTPSession.open(
            ["/usr/bin/env", "python3", "-c", server, notes["process"].string], environment: [:], host: "server")
        let process = try String(contentsOfFile: notes["process"].string, encoding: .utf8)
        #expect(FileManager.default.fileExists(atPath: "/proc/\(process)"))
        session.close()
        #expect(await eventually(within: .seconds(30)) { !FileManager.default.fileExists(atPath: "/proc/\(process)") })
    }

    /// Reads and writes the messages of SFTP, in Python.
    private static let messages = """
        import os, struct, sys
        def read(count):
            data = b""
            while len(data) < count:
                data += os.read(0, count - len(data)) or sys.exit()
            return data
        def send(data):
            os.write(1, struct.pack(">I", len(data)) + data)
        """

    @Test("SFTP-4: a response to no request is not answered")
    func strayResponses() async throws {
        // It sends a hundred handles without a request, and then tells as a size how many of them it was to close.
        let server = """
            \(Self.messages)
            closed = 0
            while True:
                message = read(struct.unpack(">I", read(4))[0])
                if message[0] == 1:
                    send(struct.pack(">BI", 2, 3))
                    for number in range(100):
                        send(struct.pack(">BII", 102, 1000000 + number, 1) + b"h")
                elif message[0] == 4:
                    closed += 1
                else:
                    send(b"\\x69" + message[1:5] + struct.pack(">IQ", 1, closed))
            """
        let session = try await SFTPSession.open(
            ["/usr/bin/env", "python3", "-c", server], environment: [:], host: "server", patience: .seconds(10))
        defer { session.close() }
        var closed: UInt64?
        // The first response comes after all handles, and the second one after what they have led to.
        for _ in 0..<2 {
            closed = try await session.request(SFTPMessage.stat, [Array("/".utf8)]).attributes().size
        }
        #expect(closed == 0)
    }

    @Test("SFTP-1: a server that announces an extension and refuses it works without")
    func refusedExtension() async throws {
        // It announces its limits, and answers every request with the same status.
        let server = """
            \(Self.messages)
            def text(words):
                return struct.pack(">I", len(words)) + words
            while True:
                message = read(struct.unpack(">I", read(4))[0])
                if message[0] == 1:
                    send(struct.pack(">BI", 2, 3) + text(b"limits@openssh.com") + text(b"1"))
                else:
                    send(struct.pack(">B", 101) + message[1:5] + struct.pack(">I", 8))
            """
        let session = try await SFTPSession.open(
            ["/usr/bin/env", "python3", "-c", server], environment: [:], host: "server", patience: .seconds(10))
        defer { session.close() }
        #expect(session.isOpen && session.pieceLength == 32_768)
    }

    @Test("SFTP-4: a cancelled call does not wait for a connection")
    func cancelledCallsReturn() async throws {
        let folder = try SFTPFolder("sleep 20")
        defer { folder.directory.remove() }
        let remote = try Self.remote(folder)
        let start = ContinuousClock.now
        let call = Task { try await remote.entry(at: .root) }
        try await Task.sleep(for: .milliseconds(300))
        call.cancel()
        _ = await call.result
        #expect(start.duration(to: .now) < .seconds(10))
        await remote.close()
    }

    @Test func largeContentsComeAndGo() async throws {
        let folder = try SFTPFolder()
        defer { folder.directory.remove() }
        let remote = try Self.remote(folder)
        let bytes = (0..<5_000_001).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }
        try await withContent(bytes) { source in
            let path = RemotePath(["large"])
            let made = try await remote.write(source, to: path, attributes: RemoteAttributes(), if: .absent)
            #expect(made.size == Int64(bytes.count))
            #expect(
                try await source.equals { _ = try await remote.read(path, tag: made.tag, range: nil, into: $0) })
        }
        await remote.close()
    }

    /// Answers as an SFTP server with one directory, whose listing names only the directory itself, for ever.
    private static let endlessServer = """
        import struct, sys
        def read(count):
            data = sys.stdin.buffer.read(count)
            if len(data) < count: sys.exit()
            return data
        def text(bytes): return struct.pack(">I", len(bytes)) + bytes
        while True:
            body = read(struct.unpack(">I", read(4))[0])
            kind, number = body[0], body[1:5]
            if kind == 1: answer = bytes([2, 0, 0, 0, 3])
            elif kind == 11: answer = bytes([102]) + number + text(b"handle")
            elif kind == 12: answer = bytes([104]) + number + struct.pack(">I", 1) + text(b".") * 2 + bytes(4)
            elif kind in (7, 8, 17): answer = bytes([105]) + number + struct.pack(">II", 4, 0o40755)
            else: answer = bytes([101]) + number + bytes(4) + text(b"") * 2
            sys.stdout.buffer.write(text(answer))
            sys.stdout.buffer.flush()
        """

    @Test("NAME-8: a directory whose listing goes on without names ends with an error", .timeLimit(.minutes(1)))
    func endlessListing() async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let program = try scratch.makeFile("server.py", Self.endlessServer.utf8)
        try await SFTPFolder("python3 \(program)").withRemote { remote in
            let error = await #expect(throws: FileProviderError.self) {
                _ = try await remote.entries(in: .root, from: nil, limit: 10)
            }
            #expect(error?.code == .malformedResponse)
        }
    }

    @Test func sources() throws {
        let source = try SFTPSource("sftp://me@[::1]:2222/a b/")
        #expect(source.user == "me" && source.host == "::1" && source.port == 2222)
        #expect(source.path == Array("/a b".utf8))
        #expect(try SFTPSource("sftp://alias").path == Array(".".utf8))
        for wrong in ["sftp://", "sftp://-oProxyCommand=x/", "sftp://me:secret@host/", "sftp://host:x/"] {
            #expect(throws: FileProviderError.self) { try SFTPSource(wrong) }
        }
    }
}
