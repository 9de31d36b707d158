import FileProvider
import Foundation
import Synchronization

/// The program of a profile's `credential_process`, which prints credentials.
struct CredentialProcess {
    private let words: [String]
    private let environment: [String: String]
    private let timeout: Duration
    /// The longest output in bytes.
    private static let limit = 64 << 10

    init(_ command: String, environment: [String: String], timeout: Duration = .seconds(60)) {
        words = Self.words(of: command)
        self.environment = environment
        self.timeout = timeout
    }

    /// Splits a command at blanks outside of double quotes; a backslash before a quote or a backslash takes it literally. No
    /// shell runs.
    static func words(of command: String) -> [String] {
        var words: [String] = []
        var word: String?
        var isQuoted = false
        var characters = command.makeIterator()
        while let character = characters.next() {
            switch character {
            case "\"":
                isQuoted.toggle()
                word = word ?? ""
            case "\\":
                let next = characters.next()
                if let next, next == "\"" || next == "\\" || next == " " {
                    word = (word ?? "") + String(next)
                } else {
                    word = (word ?? "") + "\\" + (next.map(String.init) ?? "")
                }
            case " ", "\t":
                if isQuoted {
                    word = (word ?? "") + String(character)
                } else if let complete = word {
                    words.append(complete)
                    word = nil
                }
            default: word = (word ?? "") + String(character)
            }
        }
        return words + (word.map { [$0] } ?? [])
    }

    /// Runs the program.
    ///
    /// - Throws: `notAuthenticated` if it fails, takes too long, or prints no credentials.
    func credentials() async throws -> S3Credentials {
        guard let program = words.first else { throw Self.failure("is empty") }
        let output = try await run(program)
        return try CredentialDocument.credentials(in: output, of: Self.name, version: 1)
    }

    private static let name = "credential_process"

    private static func failure(_ reason: String) -> FileProviderError {
        FileProviderError(.notAuthenticated, "\(name) \(reason): run its command by hand to see why")
    }

    private struct State {
        /// All of it; nil before its end.
        var output: [UInt8]?
        var status: Int32?
    }

    private func run(_ program: String) async throws -> [UInt8] {
        let process = Process()
        // The threads that run tasks block all signals, which the program would inherit.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["--default-signal"] + words
        process.environment = environment
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle.nullDevice
        // It may contain secrets, and the log must not.
        process.standardError = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        let state = Mutex(State())
        let answer = OneShot<[UInt8]>()
        @Sendable func note(_ change: (inout State) -> Void) {
            let state = state.withLock { state in
                change(&state)
                return state
            }
            guard let output = state.output else { return }
            guard output.count <= Self.limit else { return answer.give(.failure(Self.failure("prints too much"))) }
            guard let status = state.status else { return }
            answer.give(
                status == 0 ? .success(output) : .failure(Self.failure("ends with status \(status)")))
        }
        process.terminationHandler = { process in
            let status =
                process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
            note { $0.status = status }
        }
        do {
            try process.run()
        } catch {
            throw Self.failure("cannot be started")
        }
        // The handler of a file handle misses the end of the output of a program that ends at once.
        let thread = Thread { [handle = pipe.fileHandleForReading] in
            let data = (try? handle.read(upToCount: Self.limit + 1)) ?? Data()
            note { $0.output = Array(data) }
            try? handle.close()
        }
        thread.stackSize = 1 << 20
        thread.start()
        let timer = Task {
            try await Task.sleep(for: timeout)
            answer.give(.failure(Self.failure("does not end within \(timeout)")))
        }
        defer {
            timer.cancel()
            // Foundation makes each process the leader of a process group. It may have started others.
            if process.isRunning { _ = kill(-process.processIdentifier, SIGKILL) }
        }
        return try await answer.value { answer.give(.failure(CancellationError())) }
    }
}
