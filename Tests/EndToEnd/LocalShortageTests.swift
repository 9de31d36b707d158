import Control
import Foundation
import TestSupport
import Testing

extension RealMount {
    /// What this machine runs out of is no failure of the remote.
    @Suite struct LocalShortages {
        @Test("ERROR-7: a daemon without file descriptors says so, and the domain stays online")
        func fileDescriptors() async throws {
            try await Installation.run { installation async throws in
                for number in 0..<20 { try installation.write("text", to: "d\(number)/f") }
                try await installation.mountSource()
                #expect(try await Command.run("ls", installation["d0"]).output == "f\n")
                let daemon = String(try #require(installation.daemon))
                // What is open stays open; nothing more can be opened.
                let limited = try await Command.run("prlimit", "--pid", daemon, "--nofile=8:")
                try #require(limited.status == 0, "\(limited.errors)")
                var words = ""
                for number in 1..<20 { words += try await Command.run("ls", installation["d\(number)"]).errors }
                try await Command.run("prlimit", "--pid", daemon, "--nofile=1024:").expectSuccess()
                #expect(words.contains("Too many open files"), "\(words)")
                #expect(!words.contains("No route to host"), "\(words)")
                #expect(try await installation.status().connection == .online)
                #expect(try await eventually { try await Command.run("ls", installation["d3"]).output == "f\n" })
            }
        }
    }
}
