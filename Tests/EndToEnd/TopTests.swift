import Control
import Foundation
import TestSupport
import Testing

@testable import yonder

private func domain(
    _ name: String, connection: DomainStatus.Connection = .online, received: Int64 = 0,
    transfers: [DomainStatus.Transfer] = []
) -> DomainStatus {
    DomainStatus(
        name: name, source: "/s", mountpoint: "/m/\(name)", connection: connection, reason: nil,
        items: DomainStatus.Items(known: 7, materializedFiles: 1, materializedDirectories: 2),
        bytes: DomainStatus.Bytes(local: 3 << 20, limit: nil), pending: DomainStatus.Pending(items: 4, bytes: 5),
        failed: 6, transfers: transfers, passthrough: false, warnings: ["careful\u{1B}[31m"], received: received,
        sent: 0)
}

private func report(_ domains: DomainStatus..., fetched: Int64 = 0) -> StatusReport {
    var report = StatusReport(
        daemon: DaemonStatus(
            worker: 1, keeper: nil, startedAt: "", restarts: 0, warnings: [], stateDirectory: "/state"),
        readers: [ReaderStatus(process: 12, name: "grep", fetched: fetched, limit: nil, isRefused: false)])
    report.domains = domains
    return report
}

@Suite struct TopModels {
    private let start = ContinuousClock.now

    @Test("TOP-1: rates are those of the last seconds") func rates() {
        var model = TopModel()
        func transfer(_ done: Int64) -> DomainStatus.Transfer {
            DomainStatus.Transfer(path: "/m/a/x", direction: "upload", done: done, total: 9000)
        }
        model.show(report(domain("a", received: 1000, transfers: [transfer(0)]), fetched: 10), at: start)
        #expect(model.received(domain("a")) == nil)
        let end = start + .seconds(2)
        model.show(report(domain("a", received: 5000, transfers: [transfer(3000)]), fetched: 30), at: end)
        #expect(model.received(domain("a")) == 2000)
        #expect(model.rate(transfer(0)) == 1500)
        #expect(model.rate(report().readers[0]) == 10)
        // A transfer of the same file later begins anew.
        model.show(report(domain("a")), at: end + .seconds(1))
        #expect(model.rate(transfer(0)) == nil)
    }

    @Test("TOP-1: a transfer of the largest size has a rate and a percentage") func largeTransfer() {
        var model = TopModel()
        func transfer(_ done: Int64, of total: Int64) -> DomainStatus.Transfer {
            DomainStatus.Transfer(path: "/m/a/x", direction: "download", done: done, total: total)
        }
        model.show(report(domain("a", transfers: [transfer(0, of: .max)])), at: start)
        model.show(report(domain("a", transfers: [transfer(.max, of: .max)])), at: start + .seconds(1))
        #expect(model.rate(transfer(.max, of: .max)) == Int64.max)
        model.show(report(domain("a", transfers: [transfer(1 << 61, of: 1 << 62)])), at: start)
        let lines = TopScreen(model: model, columns: 90, rows: 20).lines
        #expect(lines.contains { $0.hasPrefix("  down  50 %  4096 PiB") }, "\(lines)")
    }

    @Test("TOP-1: keys choose a domain and act on it; eviction asks first") func keys() {
        var model = TopModel()
        #expect(model.press(.character("p")) == nil)
        model.show(report(domain("a"), domain("b", connection: .paused)), at: start)
        #expect(model.press(.character("p")) == .pause("a"))
        #expect(model.press(.down) == nil && model.press(.down) == nil)
        #expect(model.press(.character("p")) == .resume("b"))
        #expect(model.press(.character("r")) == .retry("b"))
        #expect(model.press(.character("e")) == nil && model.question == "b")
        #expect(model.press(.character("n")) == nil && model.question == nil)
        #expect(model.press(.character("e")) == nil && model.press(.character("y")) == .evict("b"))
        // The domain stays selected when another is mounted, and the question goes with its domain.
        model.show(report(domain("0"), domain("a"), domain("b")), at: start)
        #expect(model.selected?.name == "b")
        _ = model.press(.character("e"))
        model.show(report(domain("0")), at: start)
        #expect(model.question == nil && model.selected?.name == "0")
        #expect(model.press(.character("q")) == .quit && model.press(.interrupt) == .quit)
    }

    @Test("TOP-1: control sequences of a terminal are keys, or nothing") func sequences() {
        #expect(
            TopKey.keys(in: Array("q\u{1B}[A\u{1B}OB\u{1B}[5~x\u{3}".utf8)) == [
                .character("q"), .up, .down, .character("x"), .interrupt,
            ])
        #expect(TopKey.keys(in: Array("\u{1B}[1;5".utf8)) == [])
    }
}

@Suite struct TopScreens {
    @Test("TOP-1: the screen fits into the terminal, and shows no control characters", arguments: [1, 5, 40, 200])
    func fits(_ columns: Int) {
        var model = TopModel()
        let transfers = (0..<30).map {
            DomainStatus.Transfer(path: "/m/a/\n\($0)", direction: "download", done: 1, total: 2)
        }
        model.show(report(domain("a", transfers: transfers)), at: .now)
        let lines = TopScreen(model: model, columns: columns, rows: 10).lines
        #expect(lines.count == 10)
        #expect(lines.allSatisfy { $0.count < max(1, columns) || $0.isEmpty })
        #expect(!lines.joined().contains { $0.isNewline || $0 == "\u{1B}" })
        #expect(columns < 40 || lines.last?.hasPrefix("q quit") == true)
        #expect(columns < 40 || lines.contains { $0.hasPrefix("  down  50 %  2 bytes") })
    }
}

extension RealMount {
    @Suite struct Tops {
        private struct Session: Decodable {
            var status: Int32
            var screens: [[String]]
            var restored: Bool
            var end: String
        }

        private func top(_ yonder: Installation, _ steps: [[String]]) async throws -> Session {
            let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("Programs/terminal/keys.py")
            let text = String(decoding: try JSONEncoder().encode(steps), as: UTF8.self)
            let outcome = try await Command(
                ["python3", script.path, "90", "24", text, Installation.program, "top"],
                environment: yonder.environment, seconds: 60
            ).run()
            try #require(outcome.status == 0, "\(outcome.errors)")
            return try JSONDecoder().decode(Session.self, from: Data(outcome.outputBytes))
        }

        @Test("TOP-1: yonder top pauses, resumes and evicts by keys, and leaves the terminal as it was") func acts()
            async throws
        {
            try await Installation.mounted(["file": String(repeating: "x", count: 5000)]) { yonder async throws in
                try await yonder.shell("cat file >/dev/null")
                let session = try await top(
                    yonder,
                    [["online", "p"], ["paused", "p"], ["online", "e"], ["y/n", "y"], ["freed 4.9 KiB", "q"]])
                #expect(session.status == 0 && session.restored)
                #expect(session.end.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"))
                #expect(session.screens.contains { $0.contains { $0.contains("hour 4.9 KiB") } })
                #expect(session.screens.allSatisfy { $0.count <= 24 && $0.allSatisfy { $0.count < 90 } })
                #expect(try await yonder.status().bytes.local == 0)
                let ended = try await top(yonder, [["mount", "\u{3}"]])
                #expect(ended.status == 0 && ended.restored)
            }
        }

        @Test("TOP-1: without a terminal, yonder top prints one report") func withoutTerminal() async throws {
            try await Installation.mounted { yonder async throws in
                let lines = try await yonder.yonder("top").output.split(separator: "\n")
                #expect(lines.count == 4 && lines.dropFirst().first?.hasPrefix("> mount   online") == true, "\(lines)")
                #expect(try await yonder.json(StatusReport.self, "top").domains.count == 1)
                #expect(try await yonder.yonder("shutdown").status == 0)
                #expect(try await yonder.yonder("top").status == 69)
            }
        }
    }
}
