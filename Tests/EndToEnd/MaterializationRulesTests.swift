import Dispatch
import Foundation
import Logging
import Replica
import Sync
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// Which processes the rules and the configuration mean.
@Suite struct MaterializationRulesTests {
    private func refusal(
        _ rules: MaterializationRules, executable: String? = nil, name: String? = nil, thread: String? = nil,
        controlGroup: String? = nil
    ) -> MaterializationRules.Refusal? {
        rules.refusal(
            of: MaterializationRules.Subject(
                executable: executable, name: name, thread: thread, controlGroup: controlGroup))
    }

    @Test(
        "patterns",
        arguments: [
            ("updatedb", "updatedb", true), ("updatedb", "updatedb2", false), ("tracker-*", "tracker-extract-3", true),
            ("*-thumbnailer", "evince-thumbnailer", true), ("*-thumbnailer", "thumbnailer", false), ("*", "", true),
            ("a*b*c", "a--b--c", true), ("a*b*c", "a--b--", false), ("a*bc", "abcbc", true), ("", "x", false),
        ])
    func patterns(pattern: String, text: String, fits: Bool) {
        #expect(NamePattern.matches(text, pattern) == fits)
    }

    @Test("a configuration that is no file is complained about, and nothing waits for it") func noFile() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let fifo = directory["config"].string
        try #require(try await Command.run("mkfifo", fifo).status == 0)
        for path in [fifo, directory.path.string] {
            let configuration = Configuration(at: path, keepingCopyAt: directory["copy"].string)
            #expect(configuration.complaints.count == 1)
            #expect(configuration.rules == .usual)
        }
    }

    @Test("only the owner may read the copy of the last good configuration, also one that others could read before")
    func copyIsTheOwners() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let file = try directory.makeFile("config", Array("[ignore]\nnames = [\"a\"]\n".utf8))
        let copy = directory["copy"]
        _ = Configuration(at: file.string, keepingCopyAt: copy.string)
        #expect(try FileStatus(at: copy).permissions == 0o600)
        #expect(try copy.contents() == file.contents())
        try copy.setPermissions(0o644)
        _ = Configuration(at: file.string, keepingCopyAt: copy.string)
        #expect(try FileStatus(at: copy).permissions == 0o600)
        _ = try directory.makeFile("config", Array("[ignore".utf8))
        #expect(Configuration(at: file.string, keepingCopyAt: copy.string).ignoredNames.patterns.contains("a"))
    }

    @Test("programs by their file's name, by their own, and by path") func programs() {
        let rules = MaterializationRules(programs: ["scan", "/opt/*/agent"])
        #expect(refusal(rules, executable: "/usr/bin/scan") != nil)
        #expect(refusal(rules, executable: "/usr/bin/python3", name: "scan") != nil)
        #expect(refusal(rules, executable: "/opt/x/agent") != nil)
        #expect(refusal(rules, executable: "/usr/bin/agent", name: "agent") == nil)
        // As exact as a name is.
        #expect(refusal(rules, executable: "/usr/bin/Scan", name: "scanner") == nil)
    }

    @Test("a thread of a program by both names, and thumbnailers as such") func threads() {
        let manager = "/usr/bin/pcmanfm"
        #expect(refusal(.usual, executable: manager, name: "pcmanfm", thread: "loader")?.isOfThumbnailer == true)
        #expect(refusal(.usual, executable: manager, name: "pcmanfm", thread: "pool-pcmanfm") == nil)
        #expect(refusal(.usual, executable: manager, name: "pcmanfm") == nil)
        #expect(refusal(.usual, executable: "/usr/bin/cp", name: "cp", thread: "loader") == nil)
        #expect(refusal(.usual, executable: "/usr/lib/x/tumblerd")?.isOfThumbnailer == true)
        #expect(refusal(.usual, executable: "/usr/bin/updatedb")?.isOfThumbnailer == false)
    }

    @Test("units wherever in the control group they are, and exceptions before all") func units() {
        let group = "/user.slice/user-1000.slice/user@1000.service/session.slice/tracker-miner-fs-3.service"
        #expect(refusal(.usual, executable: "/usr/bin/helper", controlGroup: group) != nil)
        #expect(refusal(.usual, executable: "/usr/bin/cat", controlGroup: "/user.slice/session-2.scope") == nil)
        var rules = MaterializationRules.usual
        rules.exceptions = ["tracker-*.service", "borg"]
        #expect(refusal(rules, executable: "/usr/bin/helper", controlGroup: group) == nil)
        #expect(refusal(rules, executable: "/usr/bin/borg") == nil)
        #expect(refusal(rules, executable: "/usr/bin/restic") != nil)
    }

    @Test(
        "what people copy with is on no list", arguments: ["cp", "rsync", "tar", "cat", "python3", "nautilus", "git"])
    func usualPrograms(name: String) {
        #expect(refusal(.usual, executable: "/usr/bin/" + name, name: name) == nil)
    }

    @Test("the configuration adds, excepts, and can do without the usual list") func configuration() throws {
        let own = try Configuration(
            text: """
                # For tests.
                [materialization]
                deny = ["mine", "/opt/bin/*"]
                deny-units = ["mine.service"]
                allow = ["borg"]
                """
        ).rules
        #expect(refusal(own, executable: "/x/mine") != nil)
        #expect(refusal(own, executable: "/usr/bin/updatedb") != nil)
        #expect(refusal(own, executable: "/usr/bin/borg") == nil)
        #expect(refusal(own, controlGroup: "/system.slice/mine.service") != nil)
        let bare = try Configuration(text: "[materialization]\nusual-list = false\n").rules
        #expect(bare == MaterializationRules())
        #expect(try Configuration(text: "").rules == .usual)
        #expect(throws: (any Error).self) { try Configuration(text: "[materialization]\ndeny = 5\n") }
        #expect(throws: (any Error).self) { try Configuration(text: "materialization = [") }
    }

    @Test("LIMIT-1: a process that runs another script in the same interpreter is judged again") func otherScript()
        async throws
    {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let (go, stay) = (directory["go"].string, directory["stay"].string)
        try #require(try await Command.run("mkfifo", go, stay).status == 0)
        let script = try directory.makeFile("my-indexer", Array("#!/bin/sh\nread line <'\(stay)'\n".utf8))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: script.string)
        let policy = MaterializationPolicy(
            rules: MaterializationRules(programs: ["my-indexer"]),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let program = try await BackgroundProgram("/bin/sh", "-c", "read line <'\(go)'; exec '\(script.string)'")
        defer { program.kill() }
        #expect(policy.refusal(of: program.processIdentifier) == nil)
        let gate = try FileHandle(forWritingTo: URL(fileURLWithPath: go))
        defer { try? gate.close() }
        try gate.write(contentsOf: Data("\n".utf8))
        #expect(await eventually { policy.refusal(of: program.processIdentifier) != nil })
    }

    /// Runs something on a thread that has a name, and tells it the thread's number.
    private func onThread(named name: String, _ body: @escaping @Sendable (Int32) -> [Bool]) -> [Bool] {
        let outcome = Mutex<[Bool]>([])
        let end = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            defer { end.signal() }
            // "PROCESS/task/THREAD".
            guard let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self"),
                let number = own.split(separator: "/").last.flatMap({ Int32($0) }),
                let file = FileHandle(forWritingAtPath: "/proc/\(own)/comm"),
                (try? file.write(contentsOf: Data(name.utf8))) != nil
            else { return }
            let result = body(number)
            outcome.withLock { $0 = result }
        }
        end.wait()
        return outcome.withLock { $0 }
    }

    @Test("LIMIT-4: a budget is raised, and never lowered") func raisedBudget() {
        let budget = FetchBudget(
            limit: 10, exceptions: MaterializationRules(exceptions: []),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let own = getpid()
        budget.charge(4, to: own)
        #expect(budget.allow(own, bytes: 100)?.limit == 104)
        #expect(budget.allow(own, bytes: 1)?.limit == 104)
        #expect(budget.allow(own, bytes: nil)?.limit == 104)
        #expect(budget.allow(own, bytes: .max)?.limit == .max)
    }

    @Test("LIMIT-4: the processes for which a domain's content was fetched are listed for it alone")
    func readersOfADomain() {
        let budget = FetchBudget(
            limit: nil, exceptions: MaterializationRules(exceptions: []),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let own = getpid()
        budget.accounting(of: "one").charge(4, to: own)
        #expect(budget.readers(limit: 5, of: "one").map(\.process) == [own])
        #expect(budget.readers(limit: 5, of: "two").isEmpty)
        budget.accounting(of: "two").charge(4, to: own)
        for domain in [nil, "one", "two"] {
            #expect(budget.readers(limit: 5, of: domain).map(\.fetched) == [8])
        }
    }

    @Test("LIMIT-4: a thread that an exception names has no budget, and uses up none of its process")
    func budgetOfThread() {
        let budget = FetchBudget(
            limit: 10, exceptions: MaterializationRules(exceptions: ["*/my-reader"]),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let isRefused: @Sendable (Int32) -> Bool = { thread in budget.refusal(of: budget.account(of: thread)) != nil }
        let reads: @Sendable (Int32) -> [Bool] = { thread in
            let before = isRefused(thread)
            budget.charge(20, to: budget.account(of: thread))
            return [before, isRefused(thread)]
        }
        #expect(onThread(named: "my-reader", reads) == [false, false])
        #expect(onThread(named: "other", reads) == [false, true])
        #expect(onThread(named: "my-reader", reads) == [false, false])
        #expect(onThread(named: "other", reads) == [true, true])
    }
}
