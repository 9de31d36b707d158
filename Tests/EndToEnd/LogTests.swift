import Foundation
import InMemoryLogging
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import Daemon
@testable import Syscalls

@Suite struct OneLineLogTests {
    @Test("LOG-1: what comes from outside makes no line of its own in the log") func isOneLineEach() {
        let log = InMemoryLogHandler()
        var logger = Logger(label: "test") { _ in EscapingLogHandler(log, level: AdjustableLogLevel(.info)) }
        logger[metadataKey: "one"] = "x\ny"
        logger.warning("a\nb \u{1B}[31m", metadata: ["two": ["p\nq"]])
        logger.log(level: .error, "failed", error: TestFailure("1\n2"))
        let lines = log.entries.map { "\($0.message) \($0.metadata) \($0.error.map { "\($0)" } ?? "")" }
        #expect(lines.count == 2)
        #expect(!lines.contains { $0.contains { $0.isNewline || $0 == "\u{1B}" } }, "\(lines)")
        #expect(lines.first?.contains("a\\nb \\x{1b}[31m") == true)
    }
}

@Suite struct LogFileTests {
    @Test("LOG-4: the content of a long log moves, and both processes go on appending") func rotates() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory["log"]
        func open(_ options: FileDescriptor.OpenOptions) throws -> FileDescriptor {
            try FileDescriptor.open(path, .writeOnly, options: options, permissions: .ownerReadWrite)
        }
        func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }
        let (keeper, daemon) = (try open([.append, .create]), try open([.append]))
        defer { for file in [keeper, daemon] { try? file.close() } }
        let log = try #require(LogFile(at: path.string, openAs: daemon, limit: 10))
        for number in 1...3 {
            try keeper.writeAll("k\(number)\n".utf8)
            log.append(6) { _ = try? daemon.writeAll("d\(number)\n".utf8) }
        }
        #expect(try text(path.string) == "k3\nd3\n")
        #expect(try text(LogFile.older(path.string)) == "k1\nd1\nk2\nd2\n")
        log.append(6) {}
        #expect(try text(path.string).isEmpty)
        #expect(try text(LogFile.older(path.string)) == "k3\nd3\n")
        let attributes = try FileManager.default.attributesOfItem(atPath: LogFile.older(path.string))
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test("CMD-24: a line of the file says where the name of a domain ends") func namesEnd() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory["log"]
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.append, .create], permissions: .ownerReadWrite)
        defer { try? file.close() }
        let limited = try #require(LogFile(at: path.string, openAs: file))
        for (log, ending) in [(nil, ""), (limited, ":")] as [(LogFile?, String)] {
            let lines = InMemoryLogHandler()
            var logger = Logger(label: "test") { _ in
                EscapingLogHandler(lines, level: AdjustableLogLevel(.info), file: log)
            }
            logger[metadataKey: "domain"] = "a [b]"
            logger.warning("x", metadata: ["c": "d"])
            let wanted: Logger.Metadata = ["c": "d", "domain": "a [b]\(ending)"]
            #expect(lines.entries.map(\.metadata) == [wanted])
        }
    }

    @Test("only a file that the daemon appends to is its log") func isOwn() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let (log, other) = (directory["log"], directory["other"])
        for path in [log, other] {
            let file = try FileDescriptor.open(
                path, .writeOnly, options: path == log ? .create : [.create, .append], permissions: .ownerReadWrite)
            defer { try? file.close() }
            #expect(LogFile(at: log.string, openAs: file) == nil)
        }
    }
}

@Suite struct JournalLogTests {
    @Test("LOG-2: the journal gets priority and metadata as fields, and what it does not take goes to the other log")
    func fields() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory["journal"].string
        let program = """
            import socket, sys
            s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1])
            with open(sys.argv[1] + '.log', 'wb') as log: log.write(s.recv(1 << 20))
            """
        let receiver = try await BackgroundProgram("python3", "-c", program, path)
        defer { receiver.kill() }
        #expect(await eventually { FileManager.default.fileExists(atPath: path) })
        let other = InMemoryLogHandler()
        func logger(_ path: String) -> Logger {
            Logger(label: "test") { _ in
                EscapingLogHandler(
                    JournalLogHandler(socket: path, fallback: other), level: AdjustableLogLevel(.info))
            }
        }
        var domain = logger(path)
        domain[metadataKey: "domain"] = "a\nPRIORITY=0"
        domain.warning("b\nMESSAGE=c", metadata: ["an item": "d"], source: "Sync")
        #expect(await receiver.ends())
        #expect(
            try String(contentsOfFile: path + ".log", encoding: .utf8) == """
                MESSAGE=a\\nPRIORITY=0: b\\nMESSAGE=c
                PRIORITY=4
                SYSLOG_IDENTIFIER=yonderd
                YONDER_MODULE=Sync
                YONDER_AN_ITEM=d
                YONDER_DOMAIN=a\\nPRIORITY=0

                """)
        #expect(other.entries.isEmpty)
        domain = logger(directory["nothing"].string)
        domain.error("lost")
        #expect(other.entries.map { "\($0.message)" } == ["lost"])
    }

    @Test("standard error is the journal's only where JOURNAL_STREAM names it") func standardError() throws {
        let status = try FileStatus(of: .standardError)
        func isJournal(_ stream: String?) -> Bool {
            JournalLogHandler.isStandardError(environment: stream.map { ["JOURNAL_STREAM": $0] } ?? [:])
        }
        #expect(isJournal("\(status.device):\(status.inode)"))
        #expect(!isJournal("\(status.device):\(status.inode + 1)") && !isJournal("") && !isJournal(nil))
    }
}

extension RealMount {
    @Suite struct Logs {
        @Test("LOG-4: yonder log prints the older content first", arguments: [nil, 0, 1, 2, 3, 4, 5, 9])
        func older(_ count: Int?) async throws {
            try await Installation.run { yonder in
                let log = try yonder.directory.makeDirectory("state").appending("yonderd.log").string
                try Data("3\n4\n".utf8).write(to: URL(fileURLWithPath: log))
                try Data("1\n2\n".utf8).write(to: URL(fileURLWithPath: LogFile.older(log)))
                let shown = try await yonder.run("yonder log \(count.map { "-n \($0)" } ?? "")")
                let all = ["1\n", "2\n", "3\n", "4\n"]
                #expect(shown.output == all.suffix(count ?? 4).joined() && shown.status == 0)
                try await yonder.run("yonder log > /dev/full").expectFailure(saying: "the output cannot be written")
            }
        }

        @Test("LOG-3: yonder log --level changes how much the running daemon logs") func level() async throws {
            try await Installation.mounted { yonder async throws in
                func count() async throws -> Int {
                    try await yonder.yonder("log").output.split(separator: "\n").count
                }
                /// How many lines an unmount and a mount add.
                func added() async throws -> Int {
                    let before = try await count()
                    #expect(try await yonder.yonder("unmount", "mount").status == 0)
                    #expect(try await yonder.yonder("mount", "mount").status == 0)
                    return try await count() - before
                }
                #expect(try await added() > 0)
                let quiet = try await yonder.yonder("log", "--level", "error")
                #expect(quiet.status == 0 && quiet.output.isEmpty)
                #expect(try await added() == 0)
                #expect(try await yonder.yonder("log", "--level", "debug").status == 0)
                #expect(try await added() > 0)
                try await yonder.yonder("log", "--level", "loud").expectFailure(64, saying: "'loud' is no level")
            }
        }

        @Test("LOG-1: a server cannot forge lines of the log") func hrefs() async throws {
            let server = try await ScriptedServer("odd_server.py")
            defer { server.stop() }
            try await Installation.run { installation in
                let yonder = installation.with(["NETRC": "/nonexistent"])
                let mounted = try await yonder.yonder(
                    "mount", "webdav://127.0.0.1:\(server.port)/forged", yonder.mount.string, seconds: 30)
                try #require(mounted.status == 0, "\(mounted.errors)")
                #expect(try await Command.run("ls", yonder.mount.string).output == "good\n")
                let log = yonder.directory["state/yonderd.log"].string
                func text() -> String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
                #expect(await eventually { text().contains("outside") })
                #expect(!text().contains("\u{1B}") && !text().contains("\nforged"), "\(text())")
                #expect(text().contains("outside\\nforged line\\x{1b}[31m"), "\(text())")
            }
        }
    }
}
