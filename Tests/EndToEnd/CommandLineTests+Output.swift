import Foundation
import SystemPackage
import TestSupport
import Testing

/// Output that cannot be written, and control characters in diagnostics.
extension RealMount.CommandLine {
    @Test("CMD-9: a result that cannot be written is a failure, unless its reader has left") func fullOutput()
        async throws
    {
        try await Installation.mounted(["file": "x"]) { yonder async throws in
            #expect(try await Command.run("ls", yonder.mount.string).output == "file\n")
            let full = try await yonder.run("yonder ls \"$1\" > /dev/full", yonder.mount.string)
            #expect(full.status == 1 && full.errors.contains("cannot be written"), "\(full.errors)")
            let none = try await yonder.run("yonder ls \"$1\" >&-", yonder.mount.string)
            #expect(none.status == 1 && none.errors.contains("Bad file descriptor"), "\(none.errors)")
            let closed = try await yonder.run("yonder ls \"$1\" | true", yonder.mount.string)
            #expect(closed.status == 0 && closed.errors == "", "\(closed.errors)")
        }
    }

    @Test(
        "CMD-9: help, versions and completions that cannot be written are failures",
        arguments: [
            "", " --help", " --version", " ls --help", " help ls", " --generate-completion-script bash",
            "d --help",
        ])
    func fullHelp(words: String) async throws {
        let full = try await Command.shell("'\(Installation.program)'\(words) > /dev/full")
        #expect(full.status == 1 && full.errors.contains("the output cannot be written"), "\(full.errors)")
        let whole = try await Command.shell("'\(Installation.program)'\(words)")
        #expect(whole.status == 0 && whole.errors == "" && !whole.output.isEmpty, "\(whole.errors)")
        let closed = try await Command.shell("'\(Installation.program)'\(words) | true")
        #expect(closed.errors == "", "\(closed.errors)")
    }

    @Test("CMD-18: what goes on until Ctrl-C ends when its reader has gone") func closedPipes() async throws {
        try await Installation.mounted(["file": "x"]) { yonder async throws in
            for command in ["events", "status --watch", "log -f"] {
                let outcome = try await yonder.run(
                    """
                    (yonder \(command); echo ended >"$1.ended") | head -n 1 >/dev/null &
                    for i in $(seq 100); do
                        [ -e "$1.ended" ] && break
                        echo $i | tee "$2/$i" >>"$YONDER_STATE_DIR/yonderd.log"; sleep 0.1
                    done
                    cat "$1.ended"; rm -f "$1.ended"
                    """, yonder.directory["pipe"].string, yonder.mount.string)
                #expect(outcome.line == "ended", "\(command): \(outcome.errors)")
            }
        }
    }

    @Test("a diagnostic about a name with terminal escapes and line ends is one line without control characters")
    func diagnosticsAreEscaped() async throws {
        try await Installation.mounted { yonder async throws in
            let outcome = try await yonder.yonder("info", yonder["red\u{1B}[31m\nline"])
            #expect(outcome.status == 1)
            #expect(outcome.errors.hasPrefix("yonder: \(yonder["red\\x{1b}[31m\\nline"]): "), "\(outcome.errors)")
            #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome.errors)")
            let refused = try await yonder.yonder("evict", yonder["\u{1B}]0;x\u{07}"], yonder["\u{9B}2J"])
            #expect(refused.status == 1)
            let controls = refused.errors.unicodeScalars.filter {
                $0 != "\n" && ($0.value < 0x20 || (0x7F...0x9F).contains($0.value))
            }
            #expect(controls.isEmpty && refused.errors.split(separator: "\n").count == 2, "\(refused.errors)")
        }
    }
}
