import FileProvider
import Foundation
import HTTPTransport
import Logging
import ProgramProvider
import Synchronization
import Syscalls
import SystemPackage

/// A running `rclone rcd`, with an address and credentials of its own.
///
/// The process ends with its standard input, so that it does not outlive a killed daemon.
final class RcloneSession: Sendable {
    struct Launch: Sendable {
        /// The program, or its name in PATH.
        var program: String
        var environment: @Sendable () -> [String: String]
        /// A directory that only this user can access, for the socket.
        var directory: String
        /// The remote's name with its colon, for messages.
        var remote: String
        var logger: Logger
        /// The time without a response after which a call fails that has no time of its own.
        var stallTimeout: Duration = .seconds(120)
        /// How often rclone is asked whether it still answers while calls are in flight.
        var probeInterval: Duration = .seconds(20)
        /// How long it may take to answer, twice: when the machine wakes up from a suspension, the first time is over at once.
        var probePatience: Duration = .seconds(60)
        /// How long it may take to start.
        var longestStart: Duration = .seconds(30)
    }

    private struct Liveness {
        /// The number of calls in flight.
        var calls = 0
        /// Asks rclone while there are any.
        var probing: Task<Void, Never>?
        /// Set when rclone has not answered.
        var failure: String?
    }

    static let oldest = [1, 60]
    /// The number of concurrent calls. A backend that allows fewer lets them wait.
    static let concurrentCalls = 32
    /// The first version that listens on a Unix socket.
    private static let firstWithSockets = [1, 61]
    /// The kernel's limit for `sun_path`.
    private static let longestSocketPath = 107
    /// Ends the group of processes when the standard input ends. The group cannot be another's: this process is in it.
    private static let script = """
        exec 3<&0
        (cat <&3 >/dev/null 2>&1; kill -KILL 0) >/dev/null 2>&1 &
        exec "$@" </dev/null 3<&- 2>&1
        """

    let transport: HTTPTransport
    /// For the probes of rclone and of the backend: calls without an answer may have taken all the requests that the other one admits.
    private let probeTransport: HTTPTransport
    private let liveness = Mutex(Liveness())
    private let isAskedForBytes = Mutex(false)
    private let launch: Launch
    private let process: ProgramProcess
    private let output: RcloneOutput
    private let base: HTTPURL
    private let authorizer: BasicAuthorizer

    private init(
        _ process: ProgramProcess, _ output: RcloneOutput, at base: HTTPURL, _ authorizer: BasicAuthorizer,
        _ launch: Launch
    ) {
        (self.process, self.output, self.base, self.authorizer) = (process, output, base, authorizer)
        self.launch = launch
        var configuration = HTTPTransport.Configuration()
        // No proxy is on the way to this machine.
        configuration.environment = [:]
        configuration.stallTimeout = launch.stallTimeout
        transport = HTTPTransport(configuration, logger: launch.logger)
        probeTransport = HTTPTransport(configuration, logger: launch.logger)
    }

    /// Why it has ended; nil while it runs.
    var failure: String? { liveness.withLock { $0.failure } ?? output.reason }

    /// Whether it has ended, or ends within a time.
    func ends(within time: Duration) async -> Bool {
        let seen = output.changes.count
        if failure != nil { return true }
        _ = try? await output.changes.wait(after: seen, until: .now + time)
        return failure != nil
    }

    /// Starts rclone, and returns when it answers.
    static func open(_ launch: Launch) async throws -> RcloneSession {
        var environment = launch.environment()
        let version = try await version(of: launch, environment)
        let (user, password) = (secret(), secret())
        environment["RCLONE_RC_USER"] = user
        environment["RCLONE_RC_PASS"] = password
        let socket = "\(launch.directory)/rclone-\(secret().prefix(8))"
        let isSocket =
            !version.lexicographicallyPrecedes(firstWithSockets) && socket.utf8.count <= longestSocketPath
        let output = RcloneOutput(logger: launch.logger)
        let process = try await start(
            launch,
            [
                "rcd", "--rc-serve", "--rc-addr", isSocket ? "unix://\(socket)" : "127.0.0.1:0", "--use-server-modtime",
                "--ask-password=false", "--checkers", "\(concurrentCalls)", "--retries", "1", "--low-level-retries",
                "3", "--contimeout", "15s",
            ], environment, output)
        do {
            var base: HTTPURL
            if isSocket {
                base = HTTPURL(isSecure: false, host: "rclone")
                base.socketPath = socket
            } else {
                let port = try await inTime(process, launch) { try await output.port.value { process.kill() } }
                base = HTTPURL(isSecure: false, host: "127.0.0.1", port: port)
            }
            let session = RcloneSession(
                process, output, at: base, BasicAuthorizer(user: user, password: password), launch)
            try await session.waitUntilReady()
            return session
        } catch {
            process.kill()
            try? FilePath(socket).unlinkIfPresent()
            if let end = output.end {
                throw RcloneFailure(status: 0, text: end).startError(launch.remote)
            }
            throw error
        }
    }

    private static func start(
        _ launch: Launch, _ arguments: [String], _ environment: [String: String], _ output: RcloneOutput
    ) async throws -> ProgramProcess {
        do {
            return try await ProgramProcess.start(
                "/bin/sh", arguments: ["-c", script, "sh", launch.program] + arguments, environment: environment,
                logger: launch.logger, onLine: { output.take($0) }, onEnd: { output.finish($0) })
        } catch {
            throw FileProviderError(.serverUnreachable, "rclone cannot be started: \(error)")
        }
    }

    /// - Throws: `serverUnreachable` when rclone is not installed or too old.
    private static func version(of launch: Launch, _ environment: [String: String]) async throws -> [Int] {
        let output = RcloneOutput(logger: nil)
        let process = try await start(launch, ["version"], environment, output)
        let text = try await inTime(process, launch) { try await output.text.value { process.kill() } }
        process.kill()
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("rclone v") }) else {
            throw FileProviderError(
                .serverUnreachable,
                text.contains("not found")
                    ? "rclone is not installed: install version 1.60 or newer (https://rclone.org/install)"
                    : "'\(launch.program) version' fails: \(text.isEmpty ? "it says nothing" : text.prefix(200))")
        }
        let numbers = line.dropFirst("rclone v".count).split { !$0.isNumber }.compactMap { Int($0) }
        guard !numbers.lexicographicallyPrecedes(oldest) else {
            throw FileProviderError(
                .serverUnreachable,
                "this rclone is too old (\(line.dropFirst("rclone ".count))): install version 1.60 or newer")
        }
        return numbers
    }

    /// Ends a process that does not say what is waited for: nothing else ends that, because no caller has the task that starts rclone.
    private static func inTime<Value: Sendable>(
        _ process: ProgramProcess, _ launch: Launch, _ wait: () async throws -> Value
    ) async throws -> Value {
        let late = Task {
            try await Task.sleep(for: launch.longestStart)
            process.kill()
        }
        defer { late.cancel() }
        return try await wait()
    }

    private static func secret() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<4).map { _ in String(generator.next(), radix: 36) }.joined()
    }

    /// A socket has no line in the log that says when it is there.
    private func waitUntilReady() async throws {
        let start = ContinuousClock.now
        while true {
            do {
                _ = try await call("core/version", RcloneCall(), returning: RcloneVersion.self)
                return
            } catch let error as FileProviderError where error.code == .serverUnreachable {
                guard failure == nil, start.duration(to: .now) < launch.longestStart else { throw error }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }

    // MARK: - Calls

    /// Calls a function of the remote control.
    ///
    /// - Parameters:
    ///   - patience: the time without a response.
    ///   - isProbe: whether it is sent also where calls without an answer let no other through.
    /// - Throws: ``RcloneFailure``; the errors of ``HTTPTransport``.
    func call<Result: Decodable & Sendable>(
        _ method: String, _ parameters: RcloneCall, returning type: Result.Type, patience: Duration? = nil,
        isProbe: Bool = false
    ) async throws -> Result {
        let request = try request(method, parameters, patience: patience)
        let sender = isProbe ? probeTransport : transport
        let response = try await whileRunning {
            try await sender.send(request, bodyLimit: Self.largestResponse)
        }
        guard response.head.isSuccess else { throw RcloneFailure(status: response.status, body: response.body) }
        do {
            return try JSONDecoder().decode(Result.self, from: Data(response.body))
        } catch {
            throw FileProviderError(.malformedResponse, "rclone's response to \(method) cannot be read: \(error)")
        }
    }

    private func request(_ method: String, _ parameters: RcloneCall, patience: Duration?) throws -> HTTPRequest {
        var url = base
        url.path = "/" + method
        let body = [UInt8](try JSONEncoder().encode(parameters))
        var request = HTTPRequest("POST", url, fields: ["Content-Type": "application/json"], body: .bytes(body))
        request.authorizer = authorizer
        request.patience = patience
        request.passingStatuses = []
        return request
    }

    /// A directory of about a million entries.
    private static let largestResponse = 256 << 20

    /// Downloads from rclone's server.
    ///
    /// - Parameter size: of the whole file.
    /// - Throws: `versionNoLongerAvailable` if the file has another size.
    func download(
        _ target: String, range: Range<Int64>, size: Int64, into sink: any ContentSink
    ) async throws {
        var url = base
        url.path = target
        var request = HTTPRequest("GET", url)
        request.authorizer = authorizer
        request.followsRedirects = false
        let download = HTTPDownload(
            request, range: range, size: size,
            check: { head in
                guard head.wholeLength == nil || head.wholeLength == size else {
                    throw FileProviderError(.versionNoLongerAvailable, "the file has another size")
                }
            }, failure: { RcloneFailure(status: $0.status, body: $0.body) })
        _ = try await whileRunning { try await transport.download(download, into: sink) }
    }

    /// How many bytes the calls of a group have transferred.
    ///
    /// - Parameter group: as in ``RcloneCall/statsGroup``.
    /// - Returns: nil where rclone does not say, and while it is asked for another group: the probes must not have to wait for that.
    func transferredBytes(ofGroup group: String) async -> Int64? {
        guard isAskedForBytes.withLock({ !exchange(&$0, with: true) }) else { return nil }
        defer { isAskedForBytes.withLock { $0 = false } }
        do {
            let request = try request("core/stats", RcloneCall(group: group), patience: launch.probePatience)
            let response = try await probeTransport.send(request)
            guard response.head.isSuccess else { return nil }
            return try JSONDecoder().decode(RcloneTransfers.self, from: Data(response.body)).bytes
        } catch {
            return nil
        }
    }

    /// Calls that are under way when the process has ended and the session is closed fail as those after its end. Meanwhile rclone is
    /// asked whether it still answers.
    private func whileRunning<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        beginCall()
        defer { liveness.withLock { $0.calls -= 1 } }
        do {
            return try await body()
        } catch let error as FileProviderError where error.code == .userCancelled && !Task.isCancelled {
            throw FileProviderError(.serverUnreachable, "rclone has ended")
        }
    }

    /// Closes the standard input, as the end of the daemon does.
    func endInput() { process.close() }

    func close() async {
        liveness.withLock { $0.probing?.cancel() }
        await end()
    }

    private func end() async {
        process.kill()
        // A process that is killed leaves its socket behind.
        if let socket = base.socketPath { try? FilePath(socket).unlinkIfPresent() }
        await transport.close()
        await probeTransport.close()
    }

    // MARK: - Liveness

    private func beginCall() {
        liveness.withLock { liveness in
            liveness.calls += 1
            guard liveness.probing == nil else { return }
            // Detached: the answer to a probe is no progress of the call that is the first one in flight.
            liveness.probing = Task.detached { await self.endWhenSilent() }
        }
    }

    /// Whether calls are in flight. Otherwise the next one begins to probe again.
    private func goesOnProbing() -> Bool {
        liveness.withLock { liveness in
            if liveness.calls == 0 { liveness.probing = nil }
            return liveness.calls > 0
        }
    }

    /// Probes rclone while calls are in flight, and ends it when it does not answer: a call that may take hours does not tell that the
    /// process is stopped or deadlocked. A probe goes on when the call has been given up.
    private func endWhenSilent() async {
        let (interval, patience) = (launch.probeInterval, launch.probePatience)
        while (try? await Task.sleep(for: interval)) != nil, goesOnProbing() {
            guard await isSilent(for: patience), await isSilent(for: patience) else { continue }
            let time = interval + patience * 2
            liveness.withLock { $0.failure = "it has not answered for \(time)" }
            return await end()
        }
    }

    private func isSilent(for time: Duration) async -> Bool {
        do {
            _ = try await probeTransport.send(request("rc/noop", RcloneCall(), patience: time))
            return false
        } catch {
            return (error as? FileProviderError)?.code == .timedOut
        }
    }
}

/// HTTP's basic authentication, with the credentials of one process.
private struct BasicAuthorizer: RequestAuthorizer {
    private let value: String

    init(user: String, password: String) {
        value = "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    func authorize(_ request: inout HTTPRequest) { request.fields["Authorization"] = value }
}

extension RcloneFailure {
    /// The error for a process that has ended before it was ready.
    fileprivate func startError(_ remote: String) -> FileProviderError {
        if text.contains("decrypt configuration") || text.contains("config file is encrypted")
            || text.contains("unable to decrypt")
        {
            return FileProviderError(
                .notAuthenticated,
                "rclone's configuration is encrypted: mount with --config-password-stdin, and give its password")
        }
        let last = text.split(separator: "\n").last.map(String.init) ?? text
        return FileProviderError(.serverUnreachable, "rclone does not start: \(last.prefix(300))")
    }
}
