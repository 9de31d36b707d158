import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

/// What tests of writing share.
extension Installation {
    /// Runs a line of shell in the mount, and fails the test if that fails. The words after it are its `$1`, `$2` and so
    /// on.
    @discardableResult
    func shell(
        _ line: String, _ words: String..., seconds: Int = 20, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> String {
        let outcome = try await Command(
            ["bash", "-ec", "cd \"$0\"; \(line)", mount.string] + words, environment: Self.quietGit, seconds: seconds
        ).run()
        #expect(
            outcome.status == 0, "\(line): \(outcome.status): \(outcome.errors)", sourceLocation: sourceLocation)
        return outcome.output
    }

    /// Runs a line of shell outside the mount, and fails the test if that fails. The words after it are its `$1`, `$2`
    /// and so on.
    @discardableResult
    func expectDone(
        _ line: String, _ words: String..., seconds: Int = 20, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> String {
        let outcome = try await Command(["bash", "-ec", line, "bash"] + words, seconds: seconds).run()
        #expect(
            outcome.status == 0, "\(line): \(outcome.status): \(outcome.errors)", sourceLocation: sourceLocation)
        return outcome.output
    }

    /// What would still have to be done to make the source what the mount is: names, kinds, bytes, times to the
    /// nanosecond, modes, owners and link targets. Empty when they are equal.
    func differences(excluding pattern: String = "/none") async throws -> String {
        let outcome = try await Command.run(
            "rsync", "-an", "--checksum", "--modify-window=-1", "--delete", "--itemize-changes",
            "--exclude=\(pattern)", mount.string + "/", source.string + "/", seconds: 60)
        return outcome.output + outcome.errors
    }

    /// Waits until everything is sent, and fails the test when the source is not as the mount then, or something is
    /// still pending.
    func expectSent(
        within seconds: Int = 30, excluding pattern: String = "/none",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let waited = try await yonder("wait", "--timeout", String(seconds), seconds: seconds + 10)
        let pending = try await yonder("pending")
        #expect(waited.status == 0, "\(waited.errors)\(pending.output)", sourceLocation: sourceLocation)
        #expect(pending.output == "", sourceLocation: sourceLocation)
        let differences = try await differences(excluding: pattern)
        #expect(differences == "", sourceLocation: sourceLocation)
    }

    /// Waits until everything is sent and what was changed in the source is taken in, of which `yonder wait` tells nothing. Fails the
    /// test when the source is not as the mount then, or something is still pending.
    func expectSentAndReceived(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        for words in [["wait", "--timeout", "30"], ["signal", "mount", "--wait"]] {
            let outcome = try await yonder(words: words, seconds: 40)
            #expect(outcome.status == 0, "\(words): \(outcome.errors)", sourceLocation: sourceLocation)
        }
        try await expectSent(sourceLocation: sourceLocation)
    }

    /// Waits until `yonder events` tells what happens, and fails the test if it never does. Writes files to the mount until then.
    ///
    /// - Parameter log: a file with what it prints.
    func expectListening(to log: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let isListening = try await eventually(within: .seconds(20)) {
            try await shell("echo x >item-$RANDOM", sourceLocation: sourceLocation)
            _ = try await yonder("wait")
            return (try? String(contentsOfFile: log, encoding: .utf8))?.contains("/item-") == true
        }
        #expect(isListening, sourceLocation: sourceLocation)
    }

    /// What `yonder pending` lists, by the path in the mount.
    func pending() async throws -> [String: PendingItem] {
        let items = try await json([PendingItem].self, "pending")
        return Dictionary(items.map { (relative($0.path), $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// The conflict copies, by the names of their originals.
    func conflicts() async throws -> [String: String] {
        let copies = try await json([ConflictCopy].self, "conflicts")
        return Dictionary(
            copies.map { (relative($0.original), relative($0.path)) }, uniquingKeysWith: { first, _ in first })
    }

    /// The text of a file of the source; nil when it is not there.
    func sourceText(_ name: String) -> String? {
        try? String(contentsOfFile: source.appending(name).string, encoding: .utf8)
    }

    func killDaemon() async throws {
        let daemon = try await killDaemonAndKeeper()
        #expect(await eventually { !FileManager.default.fileExists(atPath: "/proc/\(daemon)/stat") })
    }

    private func relative(_ path: String) -> String {
        path.hasPrefix(mount.string + "/") ? String(path.dropFirst(mount.string.count + 1)) : path
    }

    private static let quietGit = [
        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b", "LC_ALL": "C.UTF-8",
    ]
}
