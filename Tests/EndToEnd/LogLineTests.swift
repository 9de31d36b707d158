import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import yonder

@Suite struct LogLines {
    @Test("CMD-24: what a line of the log says is known, and all of another line is the message") func ofTheFile() {
        let lines: [(text: String, line: LogLine)] = [
            (
                "2026-11-29T17:03:45+0100 warning yonderd: domain=the photos: [Sync] [x] is odd: y",
                LogLine(
                    time: "2026-11-29T17:03:45+01:00", level: "warning", domain: "the photos", message: "[x] is odd: y")
            ),
            (
                "2026-11-29T17:03:45+0100 info yonderd: domain=the [old] photos [Sync] x: [Sync] [y] z: [Sync] 1",
                LogLine(
                    time: "2026-11-29T17:03:45+01:00", level: "info", domain: "the [old] photos [Sync] x",
                    message: "[y] z: [Sync] 1")
            ),
            // Not said where the name ends.
            (
                "2026-11-29T17:03:45+0100 info yonderd: domain=a [Sync] x: y",
                LogLine(time: "2026-11-29T17:03:45+01:00", level: "info", message: "domain=a [Sync] x: y")
            ),
            (
                "2026-11-29T17:03:45-0330 info yonderd: [S3Provider] listens",
                LogLine(time: "2026-11-29T17:03:45-03:30", level: "info", message: "listens")
            ),
            (
                "2026-11-29T17:03:45+0000 notice yonder-keeper: the worker [7] has ended",
                LogLine(time: "2026-11-29T17:03:45+00:00", level: "notice", message: "the worker [7] has ended")
            ),
            // A keeper of an earlier version.
            ("2026-11-29T17:03:45 notice yonder-keeper: ends", LogLine(level: "notice", message: "ends")),
            ("Thread 0 \"yonderd\" crashed:", LogLine(message: "Thread 0 \"yonderd\" crashed:")),
            ("4", LogLine(message: "4")),
        ]
        for (text, line) in lines { #expect(LogLine(text) == line, "\(text)") }
    }

    @Test("CMD-24: an entry of the journal has the same fields") func ofTheJournal() {
        let entry = """
            {"__REALTIME_TIMESTAMP":"1700000000123456","PRIORITY":"4","YONDER_DOMAIN":"a b","MESSAGE":"a b: is odd"}
            """
        let line = LogLine(
            time: "2023-11-14T22:13:20.123456000Z", level: "warning", domain: "a b", message: "is odd")
        #expect(LogLine(journalEntry: entry) == line)
        // systemd's own entries, and text that is not printable.
        #expect(LogLine(journalEntry: #"{"MESSAGE":[97,27,98]}"#) == LogLine(message: "a\u{1B}b"))
        #expect(LogLine(journalEntry: "-- No entries --") == LogLine(message: "-- No entries --"))
        // A long message is null otherwise.
        #expect(LogLine.journalOutput.contains("--all"))
    }
}

extension RealMount.Logs {
    private func lines(_ yonder: Installation, _ words: String...) async throws -> [LogLine] {
        try await yonder.yonder(words: ["log", "--json"] + words).output.split(separator: "\n").map {
            try JSONDecoder().decode(LogLine.self, from: Data($0.utf8))
        }
    }

    @Test("CMD-24: the name of a domain may have words in brackets") func brackets() async throws {
        try await Installation.mounted(options: ["--name", "the [old] photos [Sync] 1"]) { yonder async throws in
            try FileManager.default.moveItem(atPath: yonder.source.string, toPath: yonder.directory["away"].string)
            _ = try await yonder.yonder("signal", yonder.mount.string, "--wait")
            let line = try #require(try await lines(yonder).first { $0.message.contains("is not asked for now") })
            #expect(line.domain == "the [old] photos [Sync] 1" && line.level == "warning")
            #expect(line.message.hasPrefix("the remote is not asked for now: "), "\(line.message)")
        }
    }

    @Test("CMD-24: yonder log --json prints an object for each line") func asJSON() async throws {
        try await Installation.run { yonder in
            let log = try yonder.directory.makeDirectory("state").appending("yonderd.log").string
            // A line that is longer than what is read at once, an empty one, and one without an end.
            let long = String(repeating: "x", count: 200_000)
            try Data("\(long)\n\n2026-11-29T17:03:45+0000 info yonderd: [Sync] \u{E9}".utf8)
                .write(to: URL(fileURLWithPath: log))
            try Data("older\n".utf8).write(to: URL(fileURLWithPath: log + ".1"))
            let last = LogLine(time: "2026-11-29T17:03:45+00:00", level: "info", message: "\u{E9}")
            let all = [LogLine(message: "older"), LogLine(message: long), LogLine(message: ""), last]
            #expect(try await lines(yonder) == all)
            #expect(try await lines(yonder, "-n", "1") == [last])
        }
        try await Installation.mounted { yonder async throws in
            let start = try #require(try await lines(yonder).first { $0.message.contains("listens on") })
            #expect(start.level == "notice" && start.time != nil && start.message.hasPrefix("yonderd "))
        }
    }
}
