import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Whatever POSIX asks of a plain directory, asked of a mount: a program makes the same calls on both and compares.
    @Suite(.enabled(if: PosixProgram.obstacle == nil, "\(PosixProgram.obstacle ?? "")"))
    struct Posix {
        /// Minutes of calls: too many for every run.
        @Test(
            "every call, with every errno, does what it does on a plain directory",
            .enabled(if: PosixProgram.hasTime, "it takes minutes; YONDER_LONG_TESTS=1 runs it"),
            .timeLimit(.minutes(15)))
        func cases() async throws {
            try await Self.compare(seconds: 800, "--part", "1")
        }

        @Test("a sequence of 3,000 calls does what it does on a plain directory", .timeLimit(.minutes(5)))
        func sequence() async throws {
            try await Self.compare(seconds: 240, "--part", "2", "--calls", "3000", "--seed", "1")
        }

        @Test(
            "a random sequence does what it does on a plain directory",
            .enabled(if: PosixProgram.hasTime, "its seed is new each time; YONDER_LONG_TESTS=1 runs it"),
            .timeLimit(.minutes(5)))
        func randomSequence() async throws {
            let seed = UInt32.random(in: 0...UInt32.max)
            print("the random sequence of calls has the seed \(seed)")
            try await Self.compare(seconds: 240, "--part", "2", "--calls", "3000", "--seed", String(seed))
        }

        @Test("and one where the kernel does not write the files by itself", .timeLimit(.minutes(5)))
        func sequenceWithoutPassthrough() async throws {
            try await Self.compare(
                seconds: 240, more: ["YONDER_PASSTHROUGH": "0"], "--part", "2", "--calls", "3000", "--seed", "1")
        }

        @Test(
            "and one of 20,000, whether the kernel writes by itself or not",
            .enabled(if: PosixProgram.hasTime, "it takes minutes; YONDER_LONG_TESTS=1 runs it"),
            .timeLimit(.minutes(20)), arguments: ["0", "1"])
        func longSequence(passthrough: String) async throws {
            try await Self.compare(
                seconds: 1100, more: ["YONDER_PASSTHROUGH": passthrough], "--part", "2", "--calls", "20000", "--seed",
                "12")
        }

        @Test("nothing is seen of it when all is sent and evicted in between", .timeLimit(.minutes(5)))
        func sequenceWithEvictions() async throws {
            try await Self.compare(
                seconds: 240, isPaused: false, "--part", "2", "--calls", "1200", "--seed", "21", "--evict", "50")
        }

        private static func compare(
            seconds: Int, isPaused: Bool = true, more environment: [String: String] = [:], _ arguments: String...,
            sourceLocation: SourceLocation = #_sourceLocation
        ) async throws {
            try await Installation.run { yonder in
                let yonder = yonder.with(environment)
                let plain = try yonder.directory.makeDirectory("plain")
                // The calls are made under several users.
                try await yonder.mountSource("--allow-other")
                // What is compared is the mount, not when something is sent.
                _ = try await Command.run("ls", yonder.mount.string)
                if isPaused { #expect(try await yonder.yonder("pause", "mount").status == 0) }
                let outcome = try await Command(
                    ["python3", PosixProgram.path, yonder.mount.string, plain.string] + arguments,
                    environment: yonder.environment.merging(["YONDER_PROGRAM": Installation.program]) { $1 },
                    seconds: seconds
                ).run()
                #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)", sourceLocation: sourceLocation)
            }
        }
    }
}

/// The program that compares.
private enum PosixProgram {
    static let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Programs/posix").path

    /// Whether tests may take minutes.
    static var hasTime: Bool { ProcessInfo.processInfo.environment["YONDER_LONG_TESTS"] == "1" }

    /// Why it cannot be run here; nil when it can.
    static var obstacle: String? {
        if geteuid() != 0 { return "calls are made under several users, which only root can" }
        let search = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let isThere = search.split(separator: ":").contains { access("\($0)/python3", X_OK) == 0 }
        return isThere ? nil : "there is no python3"
    }
}
