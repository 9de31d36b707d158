import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import yonder

extension RealMount {
    @Suite struct DiskUsages {
        @Test("CMD-13: yonder du sums what is on this machine, and fetches nothing") func sums() async throws {
            try await Installation.run { yonder in
                try yonder.write(String(repeating: "x", count: 5000), to: "d/e/large")
                try yonder.write(String(repeating: "x", count: 300), to: "d/small")
                try yonder.write("far", to: "f/far")
                try yonder.write("x", to: "top")
                try await yonder.mountSource()
                try await yonder.shell("find . >/dev/null; cat d/e/large d/small top >/dev/null; ln d/e/large d/e/link")
                // What was read is written down a moment later.
                for name in ["d/e/large", "d/small", "top"] {
                    #expect(try await eventually { try await yonder.info(name).content == "materialized" })
                }
                func entries(_ words: String...) async throws -> [String] {
                    let outcome = try await yonder.yonder(words: ["du", "--json", yonder.mount.string] + words)
                    let entries = try JSONDecoder().decode([LocalUsage.Entry].self, from: Data(outcome.outputBytes))
                    return entries.map {
                        "\($0.local)/\($0.size) \($0.path.dropFirst(yonder.mount.string.count))"
                    }
                }
                #expect(try await entries() == ["5301/5304 ", "5300/5300 /d", "0/3 /f"])
                #expect(try await entries("-d", "0") == ["5301/5304 "])
                #expect(
                    try await entries("-a", "--depth", "3").prefix(5)
                        == ["5301/5304 ", "5300/5300 /d", "5000/5000 /d/e", "5000/5000 /d/e/large", "300/300 /d/small"])
                #expect(try await yonder.info("f/far").content == "dataless")
                let text = try await yonder.yonder("du", yonder["d"]).output
                #expect(text.hasPrefix("5.2 KiB  of 5.2 KiB  \(yonder["d"])\n"), "\(text)")
            }
        }

        @Test("CMD-13: yonder du says where a directory was never listed") func unlisted() async throws {
            try await Installation.run { yonder in
                try yonder.write("far", to: "d/e/far")
                try yonder.write("x", to: "top")
                try await yonder.mountSource()
                func unlisted(_ name: String) async throws -> [Int] {
                    let path = name.isEmpty ? yonder.mount.string : yonder[name]
                    let outcome = try await yonder.yonder("du", "--json", path)
                    return try JSONDecoder().decode([LocalUsage.Entry].self, from: Data(outcome.outputBytes))
                        .map(\.unlisted)
                }
                try await yonder.shell("ls . >/dev/null")
                #expect(try await unlisted("") == [1, 1])
                #expect(try await unlisted("d") == [1])
                let text = try await yonder.yonder("du", "-d", "0", yonder.mount.string).output
                #expect(text == "0 bytes  of at least 1 byte  \(yonder.mount)\n", "\(text)")
                try await yonder.shell("ls d d/e >/dev/null")
                #expect(try await unlisted("") == [0, 0])
                #expect(try await unlisted("d/e") == [0])
            }
        }

        @Test("CMD-14: yonder ls --state lists items of one state, and with -0 their names alone") func states()
            async throws
        {
            try await Installation.run { yonder in
                for name in ["d/a", "d/b\nc", "here"] { try yonder.write("x", to: name) }
                try await yonder.mountSource()
                try await yonder.shell("find . >/dev/null; cat here >/dev/null")
                #expect(try await eventually { try await yonder.info("here").content == "materialized" })
                let far = try await yonder.yonder("ls", "-R", "--state", "dataless", "-0", yonder.mount.string)
                #expect(far.output == "d/a\0d/b\nc\0")
                let near = try await yonder.yonder("ls", "-R", "--state", "materialized", "--null", yonder.mount.string)
                #expect(near.output == "d\0here\0")
                let below = try await yonder.yonder("ls", "-0", yonder["d"])
                #expect(below.output == "a\0b\nc\0")
                let file = try await yonder.yonder("ls", "-0", yonder["here"])
                #expect(file.output == yonder["here"] + "\0")
                // A program that reads these names in another directory takes other files.
                let help = try await yonder.yonder("ls", "--help").output
                #expect(help.contains("relative to PATH") && help.contains("yonder ls -0 . | xargs -0"), "\(help)")
                let none = try await yonder.yonder("ls", "--state", "partial", yonder.mount.string)
                #expect(none.status == 0 && none.output.isEmpty && none.errors.isEmpty)
                #expect(try await yonder.yonder("ls", "--state", "gone", yonder.mount.string).status == 64)
            }
        }
    }
}
