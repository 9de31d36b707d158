import Foundation
import Logging
import Synchronization
import Syscalls
import SystemPackage

/// Follows the property `Metered` of NetworkManager on the system bus, by gdbus(1)
/// ([decision](../../../Docs/decisions/0013-metered-connections.md)).
final class NetworkManager: Sendable {
    private let environment: [String: String]
    private let logger: Logger
    /// Whether the log says already that there is no gdbus.
    private let hasWarned = Mutex(false)
    private let obstacle = Mutex<String?>(nil)

    private static let name = "org.freedesktop.NetworkManager"
    private static let object = ["--system", "--dest", name, "--object-path", "/org/freedesktop/NetworkManager"]
    /// gdbus does not notice that this process was killed, but the shell reads the end of its standard input then, and ends gdbus. Its
    /// own output is closed, so that the output ends with gdbus.
    private static let monitor = "gdbus monitor \"$@\" 2>&1 & exec >&- 2>&-; read -r _; kill $! 2>/dev/null; wait"

    private static let patience = Duration.seconds(10)
    private static let patienceWithEnd = Duration.seconds(1)
    /// Collects signals that come together.
    private static let shortestPause = Duration.milliseconds(100)
    private static let firstPauseWithoutBus = Duration.seconds(1)
    private static let longestPauseWithoutBus = Duration.seconds(60)

    /// - Parameter environment: PATH, and DBUS_SYSTEM_BUS_ADDRESS for another bus than that of the machine.
    init(environment: [String: String], logger: Logger) {
        self.environment =
            environment
            .filter { ["PATH", "DBUS_SYSTEM_BUS_ADDRESS"].contains($0.key) }
            .merging(["LC_ALL": "C"]) { $1 }
        self.logger = logger
    }

    /// Why no connection was taken for metered when NetworkManager was asked last; nil if it has answered.
    var complaint: String? { obstacle.withLock { $0 }.map { "'--metered pause' has no effect: \($0)" } }

    /// Reports whether the network connection is metered, now and whenever that may have changed, until the task is cancelled.
    /// Without NetworkManager or a bus it is not.
    func follow(_ report: @Sendable (Bool) -> Void) async {
        var failures = 0
        while !Task.isCancelled {
            let start = ContinuousClock.now
            if await !followBus(report), !Task.isCancelled { report(false) }
            failures = ContinuousClock.now - start > Self.longestPauseWithoutBus ? 0 : failures + 1
            let pause = Self.firstPauseWithoutBus * (1 << min(max(0, failures - 1), 6))
            try? await Task.sleep(for: min(pause, Self.longestPauseWithoutBus))
        }
    }

    /// Follows it until the connection with the bus ends, or the task is cancelled.
    ///
    /// - Returns: whether gdbus was started.
    private func followBus(_ report: @Sendable (Bool) -> Void) async -> Bool {
        let launch = ChildProcess.Launch(
            "/bin/sh", ["-c", Self.monitor, "sh"] + Self.object, environment: environment)
        guard let (process, pipes) = try? await ChildProcess.startWithPipes(launch) else { return false }
        try? pipes.errors.close()
        // Whatever gdbus prints, a signal, an error or that the name has another owner, the property is read after it: there is one
        // text to understand, and no signal is missed.
        for await _ in Self.signs(of: pipes.output) {
            if let isMetered = await isMetered(), !Task.isCancelled { report(isMetered) }
            try? await Task.sleep(for: Self.shortestPause)
        }
        await Self.end(process, pipes.input)
        return true
    }

    /// Reads the property; nil if NetworkManager does not answer, or the task is cancelled.
    private func isMetered() async -> Bool? {
        let launch = ChildProcess.Launch(
            "gdbus",
            ["call"] + Self.object + ["--method", "org.freedesktop.DBus.Properties.Get", Self.name, "Metered"],
            environment: environment)
        do {
            let (end, output) = try await ChildProcess.run(launch, reading: .output, within: Self.patience)
            if end == .exited(0), let isMetered = Self.isMetered(in: String(decoding: output, as: UTF8.self)) {
                obstacle.withLock { $0 = nil }
                return isMetered
            }
            obstacle.withLock { $0 = "NetworkManager does not say whether the connection is metered" }
            logger.debug("NetworkManager does not say whether the connection is metered (gdbus: \(end))")
            return false
        } catch let error as ChildProcess.RunError where !Task.isCancelled {
            guard case .notStarted(let reason) = error else {
                logger.debug("NetworkManager does not answer")
                return nil
            }
            obstacle.withLock { $0 = "gdbus, which asks NetworkManager, cannot be started: \(reason)" }
            let isFirst = hasWarned.withLock { !exchange(&$0, with: true) }
            if isFirst {
                logger.warning("no connection is taken for metered, because gdbus cannot be started: \(reason)")
            }
            return false
        } catch {
            return nil
        }
    }

    /// Understands the property as gdbus prints it, such as `(<uint32 4>,)`. Metered are 1 (yes) and 3 (a guess); 0 is unknown, 2 no,
    /// and 4 a guess that it is not (`NMMetered`).
    ///
    /// - Returns: nil for another text.
    static func isMetered(in text: String) -> Bool? {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        let (start, end) = ("(<uint32 ", ">,)")
        guard text.hasPrefix(start), text.hasSuffix(end),
            let value = UInt32(text.dropFirst(start.count).dropLast(end.count))
        else { return nil }
        return value == 1 || value == 3
    }

    /// An element after each piece of an output; several that were not waited for are one. Closes the descriptor after its end.
    private static func signs(of output: FileDescriptor) -> AsyncStream<Void> {
        let (signs, sign) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let thread = Thread {
            defer { try? output.close() }
            while !output.nextBytes(atMost: 1 << 12).isEmpty { sign.yield() }
            sign.finish()
        }
        thread.stackSize = 1 << 20
        thread.start()
        return signs
    }

    /// Ends the shell and gdbus, also in a task that is cancelled.
    private static func end(_ process: ChildProcess, _ input: FileDescriptor) async {
        await Task {
            try? input.close()
            if await process.end(within: patienceWithEnd) == nil { process.killGroup() }
            await process.waitForEnd()
        }.value
    }
}
