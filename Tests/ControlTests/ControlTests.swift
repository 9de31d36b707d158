import Control
import Foundation
import Logging
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

/// The socket between daemon and command line.
@Suite struct ControlTests {
    /// Answers what a test tells it to.
    final class Service: ControlService {
        private let body:
            @Sendable (ControlCommand, @escaping @Sendable (ControlEvent) -> Void) async throws -> ControlResult
        private let servesOthers: Bool

        /// - Parameter servesOthers: whether clients in other processes are answered, too.
        init(
            servesOthers: Bool = false,
            _ body:
                @escaping @Sendable (ControlCommand, @escaping @Sendable (ControlEvent) -> Void) async throws ->
                ControlResult
        ) {
            self.servesOthers = servesOthers
            self.body = body
        }

        func perform(
            _ command: ControlCommand, for peer: ControlPeer, progress: @escaping @Sendable (ControlEvent) -> Void,
            part: @escaping @Sendable (ControlResult) async throws -> Void
        ) async throws -> ControlResult {
            guard servesOthers || peer.processIdentifier == ProcessInfo.processInfo.processIdentifier else {
                throw ControlError(.notPermitted, "not who it is")
            }
            // A long result, whose parts alone would not fit into one message.
            if case .ls = command {
                let names = (0..<1000).map { _ in DomainSummary.wide }
                for _ in 0..<40 { try await part(.domains(names)) }
            }
            return try await body(command, progress)
        }
    }

    @Test func resultsOfAnyLengthComeInParts() async throws {
        try await serve(Service { _, _ in .items([]) }) { client, _ in
            let count = Mutex(0)
            let result = try await client.perform(
                .ls(path: "/", isRecursive: true),
                onPart: { part in
                    if case .domains(let domains) = part { count.withLock { $0 += domains.count } }
                })
            #expect(result == .items([]))
            #expect(count.withLock { $0 } == 40_000)
        }
    }

    /// Runs a test against a server on a socket of its own.
    private func serve(
        _ service: Service, _ test: (ControlClient, String) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let socket = directory["run/control.sock"].string
        let server = try await ControlServer(
            at: socket, userIdentifier: getuid(), service: service,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let serving = Task { try await server.run() }
        try await withCleanUp({ await server.close() }) { try await test(ControlClient(socket: socket), socket) }
        serving.cancel()
        _ = await serving.result
        #expect(!FileManager.default.fileExists(atPath: socket))
    }

    @Test func aCommandGoesThereAndItsResultComesBack() async throws {
        let service = Service { command, _ in
            guard case .evict(let paths, let isStrict) = command else { return .done }
            #expect(paths == ["/a\nb", "/é", "/e\u{301}"])
            #expect(isStrict)
            return .transferred(TransferSummary(items: 3, bytes: .max, refusals: []))
        }
        try await serve(service) { client, _ async throws in
            let result = try await client.perform(.evict(paths: ["/a\nb", "/é", "/e\u{301}"], isStrict: true))
            #expect(result == .transferred(TransferSummary(items: 3, bytes: .max, refusals: [])))
            #expect(try await client.perform(.ping) == .done)
        }
    }

    @Test func eventsComeInOrderBeforeTheResult() async throws {
        let service = Service { _, progress in
            for number in 0..<20 { progress(ControlEvent(path: "/x", items: number, bytes: 0)) }
            return .done
        }
        try await serve(service) { client, _ async throws in
            let events = Mutex<[Int]>([])
            _ = try await client.perform(.ping) { event in events.withLock { $0.append(event.items) } }
            #expect(events.withLock { $0 } == Array(0..<20))
        }
    }

    @Test func errorsComeBackAsTheyAre() async throws {
        struct Other: Error, CustomStringConvertible { var description: String { "something else" } }
        let service = Service { command, _ in
            if command == .ping { throw Other() }
            throw ControlError(.notPermitted, "no", path: "/p")
        }
        try await serve(service) { client, _ async throws in
            await #expect(throws: ControlError(.notPermitted, "no", path: "/p")) {
                try await client.perform(.shutdown)
            }
            await #expect(throws: ControlError(.failed, "something else")) { try await client.perform(.ping) }
        }
    }

    @Test func aResultOfManyItemsArrivesWhole() async throws {
        let items = (0..<20_000).map { number in
            ItemInformation(
                path: "/some/where/file\(number)", inode: Int64(number), identifier: "\(number)", kind: "file", size: 1,
                modified: "", content: "dataless", localBytes: 0, sync: "synced", pendingFields: [],
                policy: "inherited", effectivePolicy: "lazy", contentVersion: nil, metadataVersion: nil,
                isTrashed: false, trashParent: nil, error: nil)
        }
        try await serve(Service { _, _ in .items(items) }) { client, _ async throws in
            #expect(try await client.perform(.ls(path: "/", isRecursive: true)) == .items(items))
        }
    }

    @Test func resultsThatAreTooLongForOneMessageArriveWhole() async throws {
        let refusals = (0..<200_000).map { number in
            Refusal(
                path: "/home/someone/archive/of/many/years/directory/file\(number)", code: "unsyncedEdits",
                reason: "a change of it has not been uploaded yet")
        }
        // Each list is longer than a message.
        let long = String(repeating: "n", count: 4000)
        let paths = (0..<5000).map { "/\(long)/\($0)" }
        var trash = ItemsReport<TrashedItem>()
        trash.items = paths.map { path in
            TrashedItem(
                path: path, name: "n", originalPath: path, inode: 1, identifier: nil, trashParent: nil, kind: "file",
                size: 1, trashed: nil)
        }
        trash.refusals = paths.map { Refusal(path: $0, code: "EBUSY", reason: "open") }
        var changed = ItemsReport<ItemInformation>()
        changed.refusals = trash.refusals
        let checked = ["a", "b"].map { name in
            var report = CheckReport(name: name)
            report.problems = paths.map {
                CheckReport.Problem(kind: "tree", path: $0, inode: nil, message: name, isMended: false)
            }
            return report
        }
        let summary = DomainSummary(name: "d", source: "/s", mountpoint: "/m", isMounted: true)
        let results: [ControlResult] = [
            .transferred(TransferSummary(items: 3, bytes: 4, refusals: refusals, alreadyLocal: ["/a"])),
            .trash(trash), .changed(changed), .checked(checked),
            .conflicts(paths.map { ConflictCopy(path: $0, original: "/o") }),
            .pending(
                paths.map { PendingItem(path: $0, inode: 1, identifier: nil, fields: [], since: "", error: nil) }),
            .imported(ImportReport(domain: summary, items: 1, bytes: 2, isTaken: true, left: paths)),
        ]
        for result in results {
            try await serve(Service { _, _ in result }) { client, _ async throws in
                let isWhole = try await client.perform(.ping) == result
                #expect(isWhole)
            }
        }
    }

    @Test func cancellingTheClientCancelsTheCommand() async throws {
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Bool.self)
        let service = Service { _, _ in
            start.yield()
            try? await Task.sleep(for: .seconds(60))
            end.yield(Task.isCancelled)
            return .done
        }
        try await serve(service) { client, _ async throws in
            let task = Task { try await client.perform(.ping) }
            for await _ in started { break }
            task.cancel()
            _ = await task.result
            for await wasCancelled in ended {
                #expect(wasCancelled)
                break
            }
        }
    }

    @Test("clients that wait for the end of the daemon are answered before the server closes")
    func answersTheLastClients() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let socket = directory["control.sock"].string
        let service = Service { _, _ in
            begin.yield()
            for await _ in ended { break }
            // A busy machine.
            try? await Task.sleep(for: .milliseconds(300))
            return .done
        }
        let server = try await ControlServer(
            at: socket, userIdentifier: getuid(), service: service,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let serving = Task { try await server.run() }
        async let answer = ControlClient(socket: socket).perform(.shutdown)
        for await _ in begun { break }
        end.yield()
        await server.answerLastClients()
        await server.close()
        serving.cancel()
        _ = await serving.result
        let result = try await answer
        #expect(result == .done)
    }

    @Test(
        "a client that reads nothing does not hold up the end of the daemon, with and without events for it",
        .timeLimit(.minutes(1)), arguments: [0, 8])
    func stalledClient(events: Int) async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let socket = directory["control.sock"].string
        let service = Service(servesOthers: true) { _, progress in
            // More than the buffers between the two hold.
            let path = String(repeating: "n", count: 1 << 20)
            for number in 0..<events { progress(ControlEvent(path: path, items: number, bytes: 0)) }
            begin.yield()
            for await _ in ended { break }
            return .done
        }
        let server = try await ControlServer(
            at: socket, userIdentifier: getuid(), service: service,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let serving = Task { try await server.run() }
        let script = """
            import socket, sys, time
            s = socket.socket(socket.AF_UNIX)
            s.connect(sys.argv[1])
            s.sendall(b'{"version":1,"command":{"events":{"_0":null}}}\\n')
            time.sleep(60)
            """
        let client = try await BackgroundProgram("python3", "-c", script, socket)
        defer { client.kill() }
        for await _ in begun { break }
        end.yield()
        let time = await ContinuousClock().measure { await server.answerLastClients() }
        #expect(time < .seconds(4))
        client.kill()
        await server.close()
        serving.cancel()
        _ = await serving.result
    }

    @Test func withoutADaemonTheErrorSaysSo() async throws {
        let error = await #expect(throws: ControlError.self) {
            try await ControlClient(socket: "/nowhere/at/all.sock").perform(.ping)
        }
        #expect(error?.code == .unavailable)
    }

    @Test func aSecondDaemonIsRefusedAndADeadSocketReplaced() async throws {
        try await serve(Service { _, _ in .done }) { client, socket async throws in
            let error = await #expect(throws: ControlError.self) {
                _ = try await ControlServer(
                    at: socket, userIdentifier: getuid(), service: Service { _, _ in .done },
                    logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            }
            #expect(error?.code == .alreadyRunning)
            #expect(try await client.perform(.ping) == .done)
        }
    }

    @Test func nonsenseIsAnsweredWithAnError() async throws {
        try await serve(Service { _, _ in .done }) { client, socket async throws in
            for nonsense in [
                "{}", "not json", "{\"version\":99,\"command\":{}}", "{\"version\":1,\"command\":{\"x\":{}}}",
            ] {
                let answer = try await Command.python(
                    """
                    import socket, sys
                    s = socket.socket(socket.AF_UNIX)
                    s.connect(sys.argv[1])
                    s.sendall(sys.argv[2].encode() + b'\\n')
                    print(s.makefile().readline())
                    """, socket, nonsense)
                #expect(answer.output.contains("\"error\""), "\(nonsense): \(answer.output)")
            }
            #expect(try await client.perform(.ping) == .done)
        }
    }

    @Test(arguments: [
        ("0", 0), ("17", 17), ("1k", 1024), ("1K", 1024), ("1KiB", 1024), ("2MB", 2 << 20), ("3g", 3 << 30),
        ("1T", 1 << 40), ("5b", 5),
    ]) func bytesAreRead(text: String, bytes: Int64) {
        #expect(ByteText.bytes(text) == bytes)
    }

    @Test(arguments: ["", "k", "-1", "1.5g", "1x", "1ki", "9999999999999999999", "9999999p", "1 k"])
    func rejectsInvalidSizes(text: String) {
        #expect(ByteText.bytes(text) == nil)
    }

    @Test(
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1536, "1.5 KiB"),
            (1 << 30, "1.0 GiB"),
            (1_048_575, "1.0 MiB"), (15 << 20, "15 MiB"),
        ] as [(Int64, String)]) func bytesAreShown(bytes: Int64, text: String)
    {
        #expect(ByteText.text(bytes) == text)
    }

    @Test func placesFollowTheEnvironment() {
        let plain = Places(environment: ["HOME": "/home/a"])
        #expect(plain.stateDirectory == "/home/a/.local/state/yonder")
        #expect(plain.socket == "/home/a/.local/state/yonder/control.sock")
        #expect(plain.configuration == "/home/a/.config/yonder/config.toml")
        let base = Places(
            environment: [
                "HOME": "/h", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r", "XDG_CONFIG_HOME": "/c",
            ])
        #expect(base.stateDirectory == "/s/yonder")
        #expect(base.socket == "/r/yonder/control.sock")
        #expect(base.configuration == "/c/yonder/config.toml")
        let own = Places(
            environment: [
                "YONDER_STATE_DIR": "/x", "YONDER_SOCKET": "/y", "YONDER_CONFIG": "/z", "XDG_RUNTIME_DIR": "",
            ])
        #expect((own.stateDirectory, own.socket, own.configuration) == ("/x", "/y", "/z"))
    }

    @Test("CMD-23: relative XDG paths are ignored, and those of Yonder's own variables are told") func relativePaths() {
        let relative = Places(
            environment: [
                "HOME": "/h", "XDG_STATE_HOME": "s", "XDG_RUNTIME_DIR": "./r", "XDG_CONFIG_HOME": "../c",
            ])
        #expect(relative == Places(environment: ["HOME": "/h"]))
        #expect(Places(environment: ["HOME": "h"]) == Places(environment: [:]))
        let environment = [
            "YONDER_STATE_DIR": "/x", "YONDER_SOCKET": "y", "YONDER_CONFIG": "", "YONDER_SSH": "ssh",
            "XDG_CONFIG_HOME": "c",
        ]
        #expect(Places.relativePaths(in: environment) == ["YONDER_SOCKET": "y"])
    }

    @Test("SOCKET-5: a command without the daemon's XDG_RUNTIME_DIR finds its socket") func socketOfAnotherSession()
        throws
    {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let used = directory["used"]
        var environment = ["YONDER_STATE_DIR": directory.path.string]
        try Data(used.string.utf8).write(
            to: URL(fileURLWithPath: Places(environment: environment).socketNote))
        #expect(Places(environment: environment).ofRunningDaemon.socket == directory["control.sock"].string)
        let socket = try FileDescriptor.listening(at: used)
        defer { try? socket.close() }
        #expect(Places(environment: environment).ofRunningDaemon.socket == used.string)
        environment["YONDER_SOCKET"] = "/given"
        #expect(Places(environment: environment).ofRunningDaemon.socket == "/given")
    }

    @Test("without HOME, the place is the user's home directory", .enabled(if: Machine.homeDirectory != nil))
    func homeOfTheUser() {
        let home = Machine.homeDirectory
        #expect(home != nil && Places(environment: [:]).stateDirectory == (home ?? "") + "/.local/state/yonder")
    }

    @Test func absentIsNull() throws {
        let item = ItemInformation(
            path: "/p", inode: 1, identifier: nil, kind: "file", size: 0, modified: "", content: "dataless",
            localBytes: 0, sync: "synced", pendingFields: [], policy: "lazy", effectivePolicy: "lazy",
            contentVersion: nil, metadataVersion: nil, isTrashed: false, trashParent: nil, error: nil)
        let text = String(decoding: try JSONEncoder().encode(item), as: UTF8.self)
        for field in ["identifier", "contentVersion", "trashParent", "error"] {
            #expect(text.contains("\"\(field)\":null"))
        }
    }

    @Test func timesAreRFC3339() {
        #expect(Timestamp.text(seconds: 0, nanoseconds: 5) == "1970-01-01T00:00:00.000000005Z")
        #expect(Timestamp.text(seconds: -1, nanoseconds: 999_999_999) == "1969-12-31T23:59:59.999999999Z")
        #expect(Timestamp.text(seconds: 1_795_000_000, nanoseconds: 0) == "2026-11-18T11:06:40.000000000Z")
    }
}

extension DomainSummary {
    fileprivate static let wide = DomainSummary(
        name: String(repeating: "n", count: 500), source: "/", mountpoint: nil, isMounted: false)
}
