import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Logging
import ProviderDescriptors
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ProgramProvider

/// What comes of programs that crash, hang or send nonsense.
@Suite(.tags(.server)) struct HostileProgramTests {
    init() { BrokenPipes.areIgnored }

    /// The error of the first listing.
    private func failure(_ fault: String) async throws -> FileProviderError? {
        try await with(ServedByProgram(fault: fault)) { remote, _ in
            await TestSupport.failure { _ = try await remote.entries(in: .root, from: nil, limit: 10) }
        }
    }

    private func with<Value: Sendable>(
        _ served: ServedByProgram, _ body: (any PathRemote, ServedByProgram) async throws -> Value
    ) async throws -> Value {
        let remote = try await served.remote()
        do {
            let value = try await body(remote, served)
            await remote.close()
            await served.dispose()
            return value
        } catch {
            await remote.close()
            await served.dispose()
            throw error
        }
    }

    @Test(
        "PROGRAM-1: nonsense from a program is an error that says what it sent, and a line without an end does not fill memory",
        arguments: [
            ("garbage", "is not JSON-RPC 2.0 ('Traceback"), ("unknown-id", "answered call 4711"),
            ("wrong-type", "a response to 'list' that is not as the protocol has it: 'result.entries' must be"),
            ("text-id", "'id' must be a number"), ("bad-code", "oops"), ("long-line", "more than 8 MB"),
            ("cancelled", "'userCancelled', which is no code for this call"),
            ("late-code", "'filenameCollision', which is no code for this call"),
        ])
    func nonsense(fault: String, words: String) async throws {
        let error = try await failure(fault)
        #expect(
            error?.code == .malformedResponse && error?.message.contains(words) == true, "\(String(describing: error))")
    }

    @Test("PROGRAM-1: a mistake in a message is told with its field and the type that the protocol has there")
    func mistakes() {
        func words<Value: Decodable>(_ text: String, _: Value.Type) -> String? {
            do {
                _ = try JSONDecoder().decode(Value.self, from: Data(text.utf8))
                return nil
            } catch { return (error as? DecodingError)?.words }
        }
        let start = ProgramResponse<InitializeResult>.self
        #expect(
            words(#"{"result": {"version": "1", "level": "items"}}"#, start) == "'result.version' must be a number")
        #expect(words(#"{"result": {"version": 1, "level": 5}}"#, start) == "'result.level' must be a string")
        #expect(words(#"{"result": {"version": 1}}"#, start) == "'result.level' is missing")
        #expect(
            words(#"{"result": {"version": 1, "level": "items", "features": {"writing": 1}}}"#, start)
                == "'result.features.writing' must be true or false")
        #expect(words(#"{"result": 5}"#, start) == "'result' must be an object")
        #expect(words(#"{"id": "7", "jsonrpc": "2.0"}"#, ProgramHeader.self) == "'id' must be a number")
        #expect(words("oops", ProgramHeader.self)?.hasPrefix("it is not JSON") == true)
    }

    @Test("PROGRAM-2: a program that hangs is ended at the inactivity limit") func hangs() async throws {
        try await with(ServedByProgram(fault: "hang", inactivityLimit: .seconds(4))) { remote, served in
            let error = await TestSupport.failure { _ = try await remote.entries(in: .root, from: nil, limit: 10) }
            #expect(error?.code == .timedOut, "\(String(describing: error))")
            let process = try String(contentsOfFile: served.root.string + ".hangs", encoding: .utf8)
            #expect(await eventually { !FileManager.default.fileExists(atPath: "/proc/\(process)") })
        }
    }

    @Test("PROGRAM-2: progress of a call is a sign of life for the system, too") func progress() async throws {
        let answers = Atomic<Int>(0)
        let context = CallContext(
            urgency: CallUrgency(true), wait: { _ in }, answered: { answers.add(1, ordering: .relaxed) })
        // The call takes longer than the limit.
        try await with(ServedByProgram(fault: "slow", inactivityLimit: .seconds(4))) { remote, _ in
            _ = try await CallContext.$current.withValue(context) {
                try await remote.entries(in: .root, from: nil, limit: 10)
            }
        }
        // Five times progress, and the response.
        #expect(answers.load(ordering: .relaxed) >= 6)
    }

    @Test(
        "PROGRAM-7: an error of a program's start is not the answer to the call that needs the program",
        arguments: [FileProviderError.Code.noSuchItem, .cannotSynchronize, .notAuthenticated])
    func failedStarts(code: FileProviderError.Code) async throws {
        try await with(ServedByProgram()) { remote, served in
            let expected = code == .notAuthenticated ? code : .serverUnreachable
            try code.rawValue.write(toFile: served.root.string + ".failure", atomically: true, encoding: .utf8)
            // The last of them comes while the next start is awaited.
            for _ in 0..<5 {
                let error = await #expect(throws: FileProviderError.self) {
                    try await remote.delete(RemotePath(["file"]), kind: .file, if: .always)
                }
                #expect(
                    error?.code == expected && error?.message.contains("not today") == true,
                    "\(String(describing: error))")
            }
        }
    }

    @Test("PROGRAM-2: the end of a program is noticed while another program has closed what it inherited")
    func closedDescriptors() async throws {
        let (lines, ends) = (OneShot<Void>(), OneShot<String>())
        func start(
            _ program: String, onEnd: @escaping @Sendable (ProgramProcess.End) -> Void
        ) async throws -> ProgramProcess {
            try await ProgramProcess.start(
                "python3", arguments: ["-c", program], environment: ProcessInfo.processInfo.environment,
                logger: Logger(label: "test"), onLine: { _ in lines.give(.success(())) }, onEnd: onEnd)
        }
        let closing = try await start("import os, time; os.closerange(3, 1000); print(flush=True); time.sleep(60)") {
            _ in
        }
        defer { closing.kill() }
        try await lines.value {}
        let ending = try await start("raise SystemExit(3)") { end in
            if case .exited(let status) = end { ends.give(.success(status)) }
        }
        defer { ending.kill() }
        let late = Task {
            try await Task.sleep(for: .seconds(20))
            ends.give(.failure(FileProviderError(.timedOut)))
        }
        defer { late.cancel() }
        #expect(try await ends.value {} == "exit status 3")
        #expect(closing.isRunning)
    }

    @Test("PROGRAM-2: what a program leaves in its process group ends with it") func leftProcesses() async throws {
        let (lines, ends) = (OneShot<String>(), OneShot<String>())
        let process = try await ProgramProcess.start(
            "/bin/sh", arguments: ["-c", "sleep 600 & echo $!; exit 3"],
            environment: ProcessInfo.processInfo.environment, logger: Logger(label: "test"),
            onLine: { lines.give(.success(String(decoding: $0, as: UTF8.self))) },
            onEnd: { end in if case .exited(let status) = end { ends.give(.success(status)) } })
        defer { process.kill() }
        let left = try await lines.value {}
        // In a container no process may reap it.
        let isGone = await eventually {
            let status = try? String(contentsOfFile: "/proc/\(left)/status", encoding: .utf8)
            return status?.contains("State:\tZ") ?? true
        }
        #expect(isGone)
        #expect(try await ends.value {} == "exit status 3")
    }

    @Test("PROGRAM-2: a program that crashes is started again, and a call that changes nothing is repeated")
    func crashes() async throws {
        #expect(try await failure("crash") == nil)
    }

    @Test("PROGRAM-2: one that crashes again and again is started with pauses, and the error says so")
    func crashesAgain() async throws {
        try await with(ServedByProgram(fault: "crashes")) { remote, _ in
            var messages: [String] = []
            for _ in 0..<4 {
                do {
                    _ = try await remote.entries(in: .root, from: nil, limit: 10)
                } catch let error as FileProviderError { messages.append("\(error.code) \(error.message)") }
            }
            #expect(messages.first?.contains("has ended (exit status 3)") == true, "\(messages)")
            #expect(messages.last?.hasPrefix("serverUnreachable") == true, "\(messages)")
            #expect(messages.last?.contains("is started again in") == true, "\(messages)")
            // It is started at once, and ends once more: the next pause is a longer one.
            func pause(in message: String) -> Int? {
                message.split(separator: " ").lazy.compactMap { Int($0) }.last
            }
            let before = messages.last.flatMap(pause)
            try await #require(remote as? any RetryingProvider).retryNow()
            let error = await #expect(throws: FileProviderError.self) {
                _ = try await remote.entries(in: .root, from: nil, limit: 10)
            }
            #expect(try #require(error.flatMap { pause(in: $0.message) }) > #require(before), "\(messages)")
        }
    }

    @Test("PROGRAM-3: a lie about a size is an error, and no byte counts as read") func sizes() async throws {
        try await with(ServedByProgram(fault: "size")) { remote, served in
            try await served.write(Array("hello".utf8), to: "file")
            let sink = CountingSink()
            await #expect(throws: FileProviderError.self) {
                try await remote.read(RemotePath(["file"]), tag: nil, range: nil, into: sink)
            }
            #expect(sink.count == 0)
        }
    }

    @Test("NAME-6: on the level paths an entry that cannot be used is reported and left out, and the others are shown")
    func unusableEntries() async throws {
        let served = try ServedByProgram(fault: "unusable")
        let manager = TestManager(domain: served.domain, stateDirectory: served.stateDirectory)
        let provider = try await served.makeProvider(for: manager)
        let remote = try #require(provider as? PathAddressedProvider).remote
        do {
            try await served.write(Array("hello".utf8), to: "file")
            let listing = try await remote.entries(in: .root, from: nil, limit: 10)
            #expect(listing.entries.map(\.name) == ["file"] && listing.leavesOut)
            #expect(manager.warnings.count == 1, "\(manager.warnings)")
            #expect(manager.warnings.first?.contains("7 of 8 items in '/' cannot be shown") == true)
        } catch { Issue.record(error) }
        await provider.invalidate()
        await served.dispose()
    }

    @Test("NAME-6: so on the level items, in a listing and among changes, and the system knows why")
    func unusableItems() async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let source = "faulty:\(scratch["store"])"
        let settings = ProviderSettings(
            options: ["fault": "unusable"], secrets: { [:] }, environment: { ProcessInfo.processInfo.environment },
            logger: Logger(label: "test"))
        let factory = ProgramProviderFactory(
            program: ServedByProgram.programs.appending("faulty-store.py").string)
        let manager = TestManager(
            domain: FileProviderDomain(identifier: "test", source: source),
            stateDirectory: try scratch.makeDirectory("state"))
        let findings = try await factory.probe(source, settings)
        let provider = try factory.make(for: manager, settings, findings: findings)
        let request = FileProviderRequest(reason: .synchronization)
        do {
            let root = try provider.enumerator(for: .rootContainer, request: request)
            let page = try await root.enumerateItems(startingAt: .initial, suggestedPageSize: 100)
            let workingSet = try provider.enumerator(for: .workingSet, request: request)
            let anchor = try #require(try await workingSet.currentSyncAnchor())
            let changes = try await workingSet.enumerateChanges(from: anchor, suggestedBatchSize: 100)
            for items in [page.items, changes.updated] {
                let defects = items.map { $0.defect?.description }
                #expect(items.count == 10 && defects.compactMap(\.self).count == 9, "\(defects)")
                #expect(items.last?.filename == "fine" && items.last?.defect == nil)
                let mistakes = [
                    "a value that cannot be represented", "an invalid 'tagData'", "no 'kind'",
                    "an invalid 'itemIdentifier', which must be a string",
                ]
                for mistake in mistakes {
                    #expect(defects.contains(mistake), "\(defects)")
                }
            }
        } catch { Issue.record(error) }
        await provider.invalidate()
    }

    @Test("'retryAfter' makes a call wait and succeed") func retries() async throws {
        #expect(try await failure("retry") == nil)
    }

    @Test("a program of another version of the protocol, and one that is missing, are not mounted") func refusals()
        async throws
    {
        let served = try ServedByProgram(fault: "version")
        do {
            _ = try await served.factory.probe(served.domain.source, served.settings)
            Issue.record("version 99 was accepted")
        } catch { #expect("\(error)".contains("version 99"), "\(error)") }
        do {
            _ = try await served.factory.probe("nothing:here", served.settings)
            Issue.record("a program that is missing was started")
        } catch {
            let folder = served.scratch["config/yonder/providers"].string
            let words = "there is no program 'yonder-provider-nothing' in '\(folder)', '/usr/lib/yonder/providers'"
            #expect("\(error)".contains(words) && "\(error)".contains("the daemon's PATH"), "\(error)")
        }
        await served.dispose()
    }

    @Test("PROGRAM-7: what a program reports is in the log of the daemon, and above the message of a check")
    func placeOfErrors() async throws {
        let served = try ServedByProgram()
        let program = served.scratch["config/yonder/providers/yonder-provider-ending"].string
        try "#!/bin/sh\nexit 3\n".write(toFile: program, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
        for (isDaemon, words) in [(true, "see 'yonder log'"), (false, "if anything, is above")] {
            do {
                _ = try await ProgramProviderFactory(isDaemon: isDaemon).probe("ending:here", served.settings)
                Issue.record("a program that ends at once was started")
            } catch { #expect("\(error)".contains(words), "\(error)") }
        }
        await served.dispose()
    }

    @Test(
        "PROGRAM-7: a program that cannot be executed is named, and so is the interpreter that it lacks",
        arguments: [
            ("#!/bin/sh\n", 0o644, "is not executable: run 'chmod +x"),
            ("#!/usr/bin/no-such-python -u\n", 0o755, "its interpreter '/usr/bin/no-such-python' is not installed"),
            ("#!/usr/bin/env no-such-python\n", 0o755, "its interpreter 'no-such-python' is not installed"),
        ])
    func unusable(script: String, mode: Int, words: String) async throws {
        let served = try ServedByProgram()
        let program = served.scratch["config/yonder/providers/yonder-provider-unusable"].string
        try script.write(toFile: program, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: program)
        do {
            _ = try await served.factory.probe("unusable:here", served.settings)
            Issue.record("a program that cannot be executed was started")
        } catch { #expect("\(error)".contains(words), "\(error)") }
        await served.dispose()
    }

    @Test("lines are split wherever the reads end, and cut at their limit") func lines() {
        var found: [String] = []
        var buffer = LineBuffer(limit: 5, cutting: true)
        for part in ["ab", "c\nde", "f\n\nlonger line", " yet\nx\n"] {
            #expect(buffer.take(Array(part.utf8)) { found.append(String(decoding: $0, as: UTF8.self)) })
        }
        #expect(found == ["abc", "def", "", "longe", "x"])
        var strict = LineBuffer(limit: 5, cutting: false)
        #expect(!strict.take(Array("longer".utf8)) { _ in })
    }
}

/// Counts the bytes of a download.
final class CountingSink: ContentSink {
    private let total = Mutex<Int64>(0)
    var count: Int64 { total.withLock { $0 } }

    func write(_ bytes: RawSpan, at offset: Int64) throws { total.withLock { $0 += Int64(bytes.byteCount) } }

    func write(from descriptor: FileDescriptor, at offset: Int64, count: Int64) throws {
        total.withLock { $0 += count }
    }
}
