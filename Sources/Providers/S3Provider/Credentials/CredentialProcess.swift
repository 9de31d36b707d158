import FileProvider
import Syscalls

/// The program of a profile's `credential_process`, which prints credentials.
struct CredentialProcess {
    private let words: [String]
    private let environment: [String: String]
    private let timeout: Duration
    /// The longest output in bytes.
    private static let limit = 64 << 10
    static let usualTimeout = Duration.seconds(60)

    init(_ command: String, environment: [String: String], timeout: Duration = CredentialProcess.usualTimeout) {
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

    private func run(_ program: String) async throws -> [UInt8] {
        let launch = ChildProcess.Launch(program, Array(words.dropFirst()), environment: environment)
        do {
            // Its standard error may contain secrets, and the log must not.
            let (end, output) = try await ChildProcess.run(
                launch, reading: .output, limit: Self.limit, within: timeout)
            guard end == .exited(0) else { throw Self.failure("ends with \(end)") }
            return output
        } catch let error as ChildProcess.RunError {
            switch error {
            case .notStarted: throw Self.failure("cannot be started")
            case .tooMuchOutput: throw Self.failure("prints too much")
            case .timedOut: throw Self.failure("does not end within \(timeout)")
            }
        }
    }
}
