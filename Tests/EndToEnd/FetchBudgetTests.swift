import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// How much a process may have fetched.
    @Suite struct FetchBudgets {
        /// Reads files one after the other, and says how far it came. It waits for a line between its two rounds.
        private static let reader = """
            import errno, os, sys
            def go():
                done = 0
                for path in sys.argv[1:]:
                    try:
                        with open(path, "rb") as file:
                            while piece := file.read(65536):
                                done += len(piece)
                    except OSError as error:
                        print(done, errno.errorcode[error.errno], flush=True)
                        return
                print(done, "all", flush=True)
            go()
            sys.stdin.readline()
            go()
            """

        @Test("LIMIT-4: a process gets EREMOTE past its budget, others do not; events, status and why say so")
        func stopsARunawayReader() async throws {
            try await Installation.run { yonder async throws in
                let size = 300_000
                let names = (0..<20).map { "file\($0)" }
                for name in names { try yonder.write(Array(repeating: 7, count: size), to: name) }
                try """
                [materialization]
                allow = ["head"]
                process-budget = "1M"
                """.write(toFile: yonder.directory["config.toml"].string, atomically: true, encoding: .utf8)
                try await yonder.mountSource()
                let events = yonder.directory["events"].string
                let listener = try await BackgroundProgram(
                    "env", "YONDER_SOCKET=\(yonder.directory["socket"].string)", "sh", "-c",
                    "\(Installation.program) events --json > '\(events)'")
                defer { listener.kill() }
                try await yonder.expectListening(to: events)
                _ = try await yonder.shell("ls >/dev/null")
                let (lines, go) = (yonder.directory["lines"].string, yonder.directory["go"].string)
                _ = try await Command.run("mkfifo", go)
                let script = yonder.directory["reader.py"].string
                try Self.reader.write(toFile: script, atomically: true, encoding: .utf8)
                let paths = names.map { "'\(yonder[$0])'" }.joined(separator: " ")
                let reader = try await BackgroundProgram(
                    "sh", "-c", "exec python3 '\(script)' \(paths) > '\(lines)' < '\(go)'")
                defer { reader.kill() }
                // The reader begins once its input is open.
                let gate = try FileHandle(forWritingTo: URL(fileURLWithPath: go))
                defer { try? gate.close() }
                func said() -> [String] {
                    ((try? String(contentsOfFile: lines, encoding: .utf8)) ?? "").split(separator: "\n").map(
                        String.init)
                }
                #expect(await eventually(within: .seconds(20)) { said().count == 1 })
                let first = try #require(said().first?.split(separator: " "))
                #expect(first.last == "EREMOTE", "\(said())")
                // What is under way when the budget is used up still comes.
                let read = try #require(first.first.flatMap { Int($0) })
                #expect(read >= 1 << 20 && read < 5_000_000, "\(read)")
                #expect(try await yonder.status().bytes.local < 5_500_000)
                let report = try await yonder.json(StatusReport.self, "status")
                let shown = try #require(report.readers.first { $0.process == reader.processIdentifier })
                #expect(shown.isRefused && shown.limit == 1 << 20 && shown.fetched >= 1 << 20)
                #expect(shown.name.hasPrefix("python3"))
                #expect(try await yonder.yonder("status").output.contains("and gets no more"))
                #expect(
                    await eventually {
                        let text = (try? String(contentsOfFile: events, encoding: .utf8)) ?? ""
                        return text.split(separator: "\n").count { $0.contains("\"kind\":\"overBudget\"") } == 1
                    })
                let refused = try #require(names.last)
                // Another process is not concerned.
                #expect(try await Command.run("cat", yonder[refused]).outputBytes.count == size)
                // What is here the refused one can read, and with more allowed it goes on.
                let allowed = try await yonder.yonder(
                    "allow", String(reader.processIdentifier), "--bytes", "\(Int64.max)")
                #expect(allowed.status == 0, "\(allowed.errors)")
                try gate.write(contentsOf: Data("\n".utf8))
                let all = "\(names.count * size) all"
                #expect(await eventually(within: .seconds(20)) { said().last == all })
                #expect(try await yonder.yonder("allow", "1").status == 1)
                #expect(try await yonder.yonder("allow", "1", "--bytes", "0").status == 64)
            }
        }

        @Test("LIMIT-4: nothing is fetched ahead of a process past its budget, however much it reads of what is here")
        func stopsFetchingAhead() async throws {
            try await Installation.run { yonder async throws in
                let size: Int64 = 512 << 20
                try yonder.write("", to: "large")
                try await yonder.expectDone("truncate -s \(size) \"$1\"", yonder.source.appending("large").string)
                try "[materialization]\nprocess-budget = \"1M\"\n".write(
                    toFile: yonder.directory["config.toml"].string, atomically: true, encoding: .utf8)
                try await yonder.mountSource()
                // The second process finds a beginning, and is a steady reader from the first byte that is missing.
                for _ in 0..<2 {
                    let cat = try await yonder.run("cat \"$1\" >/dev/null", yonder["large"])
                    #expect(cat.status == 1 && cat.errors.contains("Object is remote"), "\(cat)")
                }
                #expect(try await yonder.status().bytes.local < size / 4)
            }
        }

        @Test("LIMIT-4: small files that are fetched ahead of a reader count for it, what a command fetches does not")
        func countsWhatIsFetchedAhead() async throws {
            try await Installation.run { yonder async throws in
                for number in 100..<400 { try yonder.write(Array(repeating: 1, count: 20_000), to: "d/\(number)") }
                try "[materialization]\nprocess-budget = \"1M\"\n".write(
                    toFile: yonder.directory["config.toml"].string, atomically: true, encoding: .utf8)
                try await yonder.mountSource()
                let grep = try await yonder.run("grep -c nothing -r \"$1\" >/dev/null", yonder["d"])
                #expect(grep.errors.contains("Object is remote"), "\(grep.errors.prefix(300))")
                #expect(try await yonder.status().bytes.local < 3_000_000)
                let refused = try await yonder.run(
                    "for f in \"$1\"/*; do yonder why \"$f\" | grep -q 'It was not fetched for grep' && exit 0; done; exit 1",
                    yonder["d"], seconds: 60)
                #expect(refused.status == 0)
                #expect(try await yonder.yonder("download", yonder["d"]).status == 0)
                #expect(try await yonder.status().bytes.local == 300 * 20_000)
            }
        }
    }
}
