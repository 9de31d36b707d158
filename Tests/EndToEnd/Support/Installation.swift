import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

/// Yonder as a user has it: the two programs, a state directory of their own, and a folder to mount. Everything goes
/// with the test, also when that fails.
struct Installation {
    let directory: TemporaryDirectory
    /// The folder that is mounted.
    let source: FilePath
    /// Where it is mounted.
    let mount: FilePath
    let environment: [String: String]

    /// A path in the mount.
    subscript(_ name: String) -> String { mount.appending(name).string }

    static func run(_ test: (Installation) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let installation = Installation(
            directory: directory, source: try directory.makeDirectory("source"), mount: directory["mount"],
            environment: [
                "YONDER_STATE_DIR": directory["state"].string, "YONDER_SOCKET": directory["socket"].string,
                "YONDER_CONFIG": directory["config.toml"].string,
            ])
        try await withCleanUp({ await installation.end() }) {
            try await $current.withValue(installation) { try await test(installation) }
        }
    }

    /// Runs a test with the source folder mounted.
    ///
    /// - Parameters:
    ///   - files: the texts of its files by path.
    ///   - options: of `yonder mount`.
    ///   - more: added to the environment of the programs.
    static func mounted(
        _ files: [String: String] = [:], options: [String] = [], environment more: [String: String] = [:],
        _ test: (Installation) async throws -> Void
    ) async throws {
        try await run { installation in
            let yonder = installation.with(more)
            for (name, text) in files { try yonder.write(text, to: name) }
            try await yonder.mountSource(options)
            try await test(yonder)
        }
    }

    /// The installation of the test that runs.
    @TaskLocal static var current: Installation?

    /// The last lines of the daemon's log.
    var endOfLog: String {
        let log = (try? String(contentsOfFile: directory["state/yonderd.log"].string, encoding: .utf8)) ?? "none"
        return log.split(separator: "\n").suffix(16).joined(separator: "\n")
    }

    /// The same, with more in the environment of the programs.
    func with(_ more: [String: String]) -> Installation {
        Installation(
            directory: directory, source: source, mount: mount, environment: environment.merging(more) { $1 })
    }

    // MARK: - The folder

    /// Writes a file of the source folder, with the directories on its way.
    func write(_ bytes: some Sequence<UInt8>, to name: String) throws {
        let path = source.appending(name)
        try FileManager.default.createDirectory(
            atPath: path.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: path.string))
    }

    func write(_ text: String, to name: String) throws {
        try write(text.utf8, to: name)
    }

    // MARK: - The programs

    /// Runs `yonder`.
    func yonder(_ arguments: String..., seconds: Int = 60) async throws -> Command.Outcome {
        try await yonder(words: arguments, seconds: seconds)
    }

    func yonder(words: [String], seconds: Int = 60) async throws -> Command.Outcome {
        try await Command([Self.program] + words, environment: environment, seconds: seconds).run()
    }

    /// Runs a line of shell in which `yonder` is ours. The words after it are its `$1`, `$2` and so on.
    func run(_ line: String, _ words: String..., seconds: Int = 60) async throws -> Command.Outcome {
        try await Command(
            ["sh", "-c", "yonder() { \(Self.program) \"$@\"; }\n" + line, "sh"] + words, environment: environment,
            seconds: seconds
        ).run()
    }

    /// Mounts the source folder, and fails the test if that fails.
    func mountSource(_ more: String..., sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await mountSource(more, sourceLocation: sourceLocation)
    }

    private func mountSource(_ more: [String], sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let outcome = try await Command(
            [Self.program, "mount", source.string, mount.string] + more, environment: environment, seconds: 30
        ).run()
        try #require(outcome.status == 0, "\(outcome.errors)", sourceLocation: sourceLocation)
    }

    /// Runs `yonder` with `--json` and reads what it prints.
    func json<Value: Decodable>(_ type: Value.Type, _ arguments: String...) async throws -> Value {
        let outcome = try await Command(
            [Self.program] + arguments + ["--json"], environment: environment, seconds: 60
        ).run()
        do {
            return try JSONDecoder().decode(Value.self, from: Data(outcome.outputBytes))
        } catch {
            Issue.record("yonder \(arguments) ended with \(outcome.status): \(outcome.errors)")
            throw error
        }
    }

    /// What `yonder info` tells.
    func info(_ name: String) async throws -> ItemInformation {
        try await json(ItemInformation.self, "info", self[name])
    }

    /// What `yonder status` tells of the mounted domain.
    func status() async throws -> DomainStatus {
        try #require(try await json(StatusReport.self, "status").domains.first)
    }

    /// The daemon's process.
    var daemon: Int32? {
        let text = try? String(contentsOfFile: directory["state/yonderd.lock"].string, encoding: .utf8)
        return text.flatMap { Int32($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
    }

    /// The process that restarts the daemon; nil if there is none.
    var keeper: Int32? {
        guard let daemon, let status = try? String(contentsOfFile: "/proc/\(daemon)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("PPid:") }),
            let parent = Int32(line.dropFirst(5).trimmingCharacters(in: .whitespaces)),
            let name = try? String(contentsOfFile: "/proc/\(parent)/comm", encoding: .utf8), name == "yonder-keeper\n"
        else { return nil }
        return parent
    }

    /// The inodes of the daemon's sockets: of the one that listens, and of one for each connection that the daemon has accepted.
    func sockets() throws -> Set<String> {
        let path = directory["socket"].string
        let lines = try String(contentsOfFile: "/proc/net/unix", encoding: .utf8).split(separator: "\n")
        let inodes = lines.filter { $0.hasSuffix(" " + path) }.compactMap { line -> String? in
            let words = line.split(separator: " ")
            return words.count > 6 ? String(words[6]) : nil
        }
        // Until it is accepted a connection has none.
        return Set(inodes).subtracting(["0"])
    }

    /// Waits until the daemon has accepted new connections.
    ///
    /// - Parameters:
    ///   - count: how many.
    ///   - before: its sockets before.
    func accepts(_ count: Int, since before: Set<String>) async throws -> Bool {
        try await eventually(within: .seconds(20)) { try sockets().subtracting(before).count >= count }
    }

    /// Kills the daemon, and the keeper before it could start another.
    func killDaemonAndKeeper() async throws -> Int32 {
        let daemon = try #require(daemon)
        if let keeper { #expect(try await Command.run("kill", "-9", String(keeper)).status == 0) }
        #expect(try await Command.run("kill", "-9", String(daemon)).status == 0)
        return daemon
    }

    /// How many files lie in the contents store.
    var contentFiles: [String] {
        let domains = directory["state/domains"].string
        let names = (try? FileManager.default.contentsOfDirectory(atPath: domains)) ?? []
        return names.flatMap {
            (try? FileManager.default.contentsOfDirectory(atPath: "\(domains)/\($0)/contents")) ?? []
        }
    }

    /// Where the programs of this build are: beside the tests.
    static let program: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("yonder").path
    }()

    /// Ends the daemon and takes away what it may have left.
    private func end() async {
        _ = try? await yonder("shutdown", seconds: 20)
        if let keeper { _ = try? await Command.run("kill", "-9", String(keeper)) }
        if let daemon { _ = try? await Command.run("kill", "-9", String(daemon)) }
        _ = try? await Command.shell("grep -qs \" $1 \" /proc/mounts && umount -l \"$1\"", mount.string)
    }
}

/// Tests on a real mount: skipped, and saying why, where there can be none. A failure of a test with an ``Installation`` shows the
/// end of the daemon's log.
@Suite(
    "on a real mount", .tags(.mount), .enabled(if: FUSEAvailability.isAvailable, "\(FUSEAvailability.obstacle ?? "")"),
    .serialized,
    .compactMapIssues { issue in
        // The suite, the suite in it and the test have the trait, and each calls this closure.
        guard let installation = Installation.current,
            !issue.comments.contains(where: { $0.rawValue.hasPrefix("the daemon's log: ") })
        else { return issue }
        var issue = issue
        issue.comments.append("the daemon's log: \(installation.endOfLog)")
        return issue
    })
struct RealMount {}
