import Control
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Web

@Suite struct DashboardSessions {
    @Test("DASHBOARD-1: a token is worth one cookie") func token() {
        let session = DashboardSession(token: "t0ken")
        session.begin(port: 8000)
        #expect(session.redeem(nil) == nil && session.redeem("") == nil && session.redeem("t0kem") == nil)
        let cookie = session.redeem("t0ken")
        #expect(cookie?.count == 32 && session.isValid(cookie))
        #expect(session.redeem("t0ken") == nil)
        #expect(!session.isValid(nil) && !session.isValid("") && !session.isValid("t0ken"))
        #expect(DashboardSession.randomText() != DashboardSession.randomText())
    }

    @Test("DASHBOARD-1: other hosts and origins are not the dashboard's") func origins() {
        let session = DashboardSession(token: "t")
        #expect(!session.isOwn(host: "127.0.0.1:8000"))
        session.begin(port: 8000)
        #expect(session.isOwn(host: "127.0.0.1:8000") && session.isOwn(host: "localhost:8000"))
        for host in ["127.0.0.1", "127.0.0.1:8001", "evil.example:8000", "evil.example", ""] {
            #expect(!session.isOwn(host: host) && !session.isOwn(origin: "http://" + host))
        }
        #expect(session.isOwn(origin: "http://127.0.0.1:8000"))
        #expect(!session.isOwn(origin: "https://127.0.0.1:8000") && !session.isOwn(origin: nil))
    }
}

@Suite struct DashboardUsages {
    private func file(_ path: String, inode: Int64, size: Int64) -> ItemInformation {
        ItemInformation(
            path: path, inode: inode, identifier: nil, kind: "file", size: size, modified: "", content: "dataless",
            localBytes: 0, sync: "synced", pendingFields: [], policy: "inherited", effectivePolicy: "lazy",
            contentVersion: nil, metadataVersion: nil, isTrashed: false, trashParent: nil, error: nil)
    }

    private func usage(_ items: [ItemInformation]) async throws -> DashboardCommands.Usage {
        try await DashboardCommands(perform: { _, _ in .items(items) }).usage(of: "/m")
    }

    @Test("DASHBOARD-2: sizes that exceed 64 bits together are shown as the largest number") func largeSizes()
        async throws
    {
        let usage = try await usage((1...303).map { file("/m/\($0)", inode: $0, size: 1 << 62) })
        #expect(usage.size == .max && usage.children.count == 300)
        #expect(usage.others.count == 3 && usage.others.size == .max)
    }

    @Test("NAME-2: names that differ only in Unicode normalization are two items, whatever they begin with")
    func normalization() async throws {
        let names = ["caf\u{E9}", "cafe\u{301}", "\u{301}"]
        let usage = try await usage(names.enumerated().map { file("/m/\($1)", inode: Int64($0), size: 9 - Int64($0)) })
        #expect(usage.size == 9 + 8 + 7)
        #expect(usage.children.map { Array($0.name.utf8) } == names.map { Array($0.utf8) })
    }
}

@Suite struct DashboardResolutions {
    /// A daemon with one conflict, which knows of no original.
    private final class PlayedDaemon: Sendable {
        let conflict: ConflictCopy
        private let asked = Mutex(0)
        /// The requests to change something.
        var requests: Int { asked.withLock { $0 } }

        init(_ conflict: ConflictCopy) { self.conflict = conflict }

        func perform(_ command: ControlCommand) throws -> ControlResult {
            if case .conflicts = command { return .conflicts([conflict]) }
            asked.withLock { $0 += 1 }
            guard case .trash(.put(let paths)) = command else { throw ControlError(.failed, "not expected") }
            var report = ItemsReport<TrashedItem>()
            report.refusals = paths.map { Refusal(path: $0, code: "failed", reason: "no such file or directory") }
            return .trash(report)
        }
    }

    @Test("DASHBOARD-3: the copy can be kept although the original is gone, and the original cannot")
    func originalIsGone() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let (copy, original) = (directory["copy"].string, directory["original"].string)
        try Data("mine".utf8).write(to: URL(fileURLWithPath: copy))
        let daemon = PlayedDaemon(ConflictCopy(path: copy, original: original))
        let commands = DashboardCommands(perform: { command, _ in try daemon.perform(command) })
        await #expect(throws: ControlError.self) {
            try await commands.resolve(copy: copy, original: original, keeping: "original")
        }
        #expect(FileManager.default.fileExists(atPath: copy))
        try await commands.resolve(copy: copy, original: original, keeping: "copy")
        #expect(FileManager.default.contents(atPath: original) == Data("mine".utf8))
        #expect(!FileManager.default.fileExists(atPath: copy))
        #expect(daemon.requests == 0)
    }
}

@Suite struct LocalPeerTests {
    @Test("DASHBOARD-1: the kernel's table says whose process has connected") func table() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 1 1 0 100 0 0 10 0
               1: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 30 10 -1
               2: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1002        0 3 1 0 20 4 30 10 -1
               3: 0100007F:C002 0100007F:1F90 06 00000000:00000000 03:00000001 00000000     0        0 0 3 0
               4: 0200007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1003        0 4 1 0 20 4 30 10 -1
            """
        let server = LocalPeer.End(address: "127.0.0.1", port: 0x1F90)
        func user(_ port: Int, at address: String = "127.0.0.1", _ server: LocalPeer.End = server) -> UInt32? {
            LocalPeer.user(of: LocalPeer.End(address: address, port: port), connectedTo: server, in: table)
        }
        #expect(user(0xC001) == 1002)
        // The same port of another address of this machine is another user's.
        #expect(user(0xC001, at: "127.0.0.2") == 1003)
        #expect(user(0xC001, at: "127.0.0.3") == nil && user(0xC001, at: "::1") == nil)
        #expect(user(0xC002) == nil)
        #expect(user(0xC001, LocalPeer.End(address: "127.0.0.1", port: 0x1F91)) == nil)
    }

    @Test("DASHBOARD-1: also a socket of IPv6 that has connected to an address of IPv4") func mappedAddress() {
        let table = """
              sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid
               0: 0000000000000000FFFF00000100007F:C001 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1002 0 3
            """
        #expect(
            LocalPeer.user(
                of: LocalPeer.End(address: "127.0.0.1", port: 0xC001),
                connectedTo: LocalPeer.End(address: "127.0.0.1", port: 0x1F90), in: table) == 1002)
    }
}

extension RealMount {
    @Suite struct Dashboards {
        /// Runs a line of shell while `yonder dashboard` runs: `$url` is the address that it printed, `$page` that without the
        /// token, and `$visit` the program that visits it.
        private func visit(_ yonder: Installation, _ line: String, seconds: Int = 180) async throws -> Command.Outcome {
            let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("Programs/browser/visit.py")
            let frame = """
                rm -f "$OUT"
                \(Installation.program) dashboard --no-browser >"$OUT" & pid=$!
                trap 'kill $pid; wait $pid' EXIT
                for i in $(seq 100); do [ -s "$OUT" ] && break; sleep 0.1; done
                url=$(cat "$OUT") page=${url%%\\?*}
                visit() { python3 '\(script.path)' "$url" --patience 60 "$@"; }

                """
            return try await Command(
                ["bash", "-c", frame + line],
                environment: yonder.environment.merging(["OUT": yonder.directory["address"].string]) { $1 },
                seconds: seconds
            ).run()
        }

        /// What a user sees, of what `visit.py` prints.
        private struct Seen: Decodable {
            struct Domain: Decodable {
                var name: String
                var connection: String
            }
            struct Tile: Decodable {
                var name: String
                var filled: Double
            }
            struct Conflict: Decodable {}
            var domains: [Domain]
            var treemap: [Tile]
            var conflicts: [Conflict]
            var buttons: [String]
            var empty: String
            var console: [String]
            var foreign: [String]
        }

        private func seen(_ outcome: Command.Outcome) throws -> Seen {
            try #require(outcome.status == 0, "\(outcome.errors)")
            let seen = try JSONDecoder().decode(Seen.self, from: Data(outcome.outputBytes))
            #expect(seen.console == [] && seen.foreign == [])
            return seen
        }

        @Test("DASHBOARD-1: the address works once, in one browser, and only from the page itself") func guarded()
            async throws
        {
            try await Installation.mounted { yonder async throws in
                let outcome = try await visit(
                    yonder,
                    """
                    code() { curl -s -o /dev/null -w '%{http_code} ' "$@"; }
                    jar=$OUT.cookies json='Content-Type: application/json' origin="Origin: ${page%/}"
                    code "$page"; code "${page}api/status"; code -H 'Host: evil.example' "$url"; code "${page}?token=x"
                    code -c "$jar" "$url"; code "$url"
                    code -b "$jar" "$page"; code -b "$jar" "${page}api/status"; code -b "$jar" "${page}script.js"
                    code -b "$jar" -H 'Host: evil.example' "${page}api/status"
                    code -b "$jar" -H "$json" -d '{"domain":"mount"}' "${page}api/pause"
                    code -b "$jar" -H "$json" -H 'Origin: http://evil.example' -d '{"domain":"mount"}' "${page}api/pause"
                    code -b "$jar" -H "$origin" -d '{"domain":"mount"}' "${page}api/pause"
                    echo; "\(Installation.program)" status | sed -n 2p
                    code -b "$jar" -H "$json" -H "$origin" -d '{"domain":"mount"}' "${page}api/pause"
                    code -b "$jar" -H "$json" -H "$origin" -d '{"domain":"none"}' "${page}api/pause"
                    code -b "$jar" -H "$json" -H "$origin" -d '{' "${page}api/pause"
                    echo; "\(Installation.program)" status | sed -n 2p
                    curl -s -b "$jar" -D - -o /dev/null "$page" | grep -ic "content-security-policy: default-src 'none'"
                    grep -c '#HttpOnly_127.0.0.1' "$jar"
                    """)
                let lines = outcome.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
                try #require(lines.count >= 6, "\(outcome.output)\(outcome.errors)")
                #expect(lines[0] == "403 403 403 403 303 403 200 200 200 403 403 403 403")
                #expect(lines[1].hasPrefix("connection  online"))
                #expect(lines[2] == "200 503 400")
                #expect(lines[3].hasPrefix("connection  paused"))
                #expect(lines[4] == "1" && lines[5] == "1")
            }
        }

        @Test(
            "DASHBOARD-1: another user can use neither the address, which stays usable, nor the cookie",
            .enabled("only root can play another user") { FUSEAvailability.isRoot })
        func otherUser() async throws {
            try await Installation.mounted { yonder async throws in
                let outcome = try await visit(
                    yonder,
                    """
                    code() { curl -s -o /dev/null -w '%{http_code} ' "$@"; }
                    export -f code
                    other() { setpriv --reuid=65534 --regid=65534 --clear-groups -- bash -c 'code "$@"' bash "$@"; }
                    jar=$OUT.cookies
                    other "$url"; code -c "$jar" "$url"
                    # Another user's server may have got the cookie, whatever the file's mode.
                    cookie=$(awk '$6 ~ /^yonder-/ { print $6 "=" $7 }' "$jar")
                    other -b "$cookie" "${page}api/status"; code -b "$cookie" "${page}api/status"
                    """)
                #expect(outcome.output.trimmingCharacters(in: .whitespaces) == "403 303 403 200", "\(outcome.errors)")
            }
        }

        private static let hasBrowser =
            ProcessInfo.processInfo.environment["CHROMIUM"] != nil
            || FileManager.default.isExecutableFile(atPath: "/usr/bin/chromium")

        @Test(
            "DASHBOARD-2: a browser shows domains and what is local, pauses, and frees space",
            .enabled(if: hasBrowser, "chromium is not installed"))
        func page() async throws {
            try await Installation.run { yonder in
                let name = "<b>&\u{202E}\"'"
                try yonder.write(String(repeating: "x", count: 5000), to: "d/\(name)")
                try yonder.write(String(repeating: "y", count: 3000), to: "d/far")
                try await yonder.mountSource()
                try await yonder.shell("ls -R >/dev/null; cat d/'<'* >/dev/null")
                let paused = try seen(
                    try await visit(yonder, "visit --into d --click 'Pause mount' --wait Paused"))
                #expect(paused.domains.map(\.name) == ["mount"] && paused.domains.first?.connection == "Paused")
                #expect(Set(paused.treemap.map { "\($0.name) \(Int($0.filled))" }) == ["\(name) 100", "far 0"])
                #expect(try await yonder.status().connection == .paused)
                let freed = try seen(
                    try await visit(yonder, "visit --click 'Resume mount' --into d --click 'Free up space'"))
                #expect(freed.domains.first?.connection == "Online")
                #expect(try await yonder.status().bytes.local == 0)
            }
        }

        @Test(
            "DASHBOARD-3: conflicts are resolved by a click, either way",
            .enabled(if: hasBrowser, "chromium is not installed"), arguments: ["this", "the other"])
        func conflict(keeping version: String) async throws {
            try await Installation.mounted(["file": "first"]) { yonder async throws in
                try await yonder.shell("cat file >/dev/null")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo here > file")
                try yonder.write("there\n", to: "file")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await eventually(within: .seconds(20)) { try await yonder.conflicts()["file"] != nil })
                let end = try seen(
                    try await visit(
                        yonder, "visit --click 'Keep \(version) version' --click 'Yes, keep \(version) version'"))
                #expect(end.conflicts.isEmpty)
                #expect(try await yonder.conflicts() == [:])
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(yonder.sourceText("file") == (version == "this" ? "here\n" : "there\n"))
                let names = try FileManager.default.contentsOfDirectory(atPath: yonder.source.string)
                #expect(names.filter { !$0.hasPrefix(".") } == ["file"])
            }
        }

        @Test("DASHBOARD-1: --json prints the address, which works, for scripts") func addressAsJSON() async throws {
            try await Installation.mounted { yonder async throws in
                let outcome = try await Command(
                    [
                        "bash", "-c",
                        """
                        '\(Installation.program)' dashboard --no-browser --json >"$OUT" & pid=$!
                        trap 'kill $pid; wait $pid' EXIT
                        for i in $(seq 100); do [ -s "$OUT" ] && break; sleep 0.1; done
                        url=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["address"])' <"$OUT")
                        curl -s -o /dev/null -w '%{http_code}' "$url"
                        """,
                    ],
                    environment: yonder.environment.merging(["OUT": yonder.directory["address"].string]) { $1 },
                    seconds: 60
                ).run()
                #expect(outcome.output == "303", "\(outcome.errors)")
            }
        }

        @Test("DASHBOARD-2: what is local is shown of a directory with a percent sign in its name") func percentSign()
            async throws
        {
            try await Installation.mounted(["a%20b/file": "12345"]) { yonder async throws in
                try await yonder.shell("ls a%20b >/dev/null")
                let outcome = try await visit(
                    yonder,
                    """
                    jar=$OUT.cookies
                    curl -s -o /dev/null -c "$jar" "$url"
                    curl -s -b "$jar" -G --data-urlencode 'path=\(yonder["a%20b"])' "${page}api/usage"
                    """)
                #expect(outcome.output.contains("\"size\":5"), "\(outcome.output)\(outcome.errors)")
            }
        }

        @Test("DASHBOARD-2: a port that is taken is an error") func taken() async throws {
            try await Installation.mounted { yonder async throws in
                let outcome = try await visit(
                    yonder, "port=${page##*:}; '\(Installation.program)' dashboard --no-browser --port \"${port%/}\"")
                #expect(outcome.status == 1 && outcome.errors.contains("is in use; choose another with --port"))
            }
        }
    }
}
