import Control
import Foundation
import Glibc
import Synchronization
import Syscalls

/// A mount in the foreground, which ends on SIGINT, SIGTERM and the SIGHUP of a closed terminal. A daemon that it has started ends
/// with it.
final class ForegroundMount: Sendable {
    /// What the next signal does.
    private enum Reaction {
        /// Ends the daemon and this process.
        case end
        /// Unmounts the domain, as soon as it is mounted.
        case unmount
        /// Ends this process when the daemon has begun to unmount the domain.
        case leave
        /// Nothing, because both are ending.
        case none
    }

    private let daemon: DaemonConnection
    private let start: Task<ChildProcess?, any Error>
    private let reaction = Mutex(Reaction.end)
    private let mounted = Mutex<DomainReference?>(nil)
    private let (unmounts, unmounting) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// Starts the daemon if none listens.
    init(_ daemon: DaemonConnection) {
        self.daemon = daemon
        start = Task { try await daemon.start(inForeground: true) }
    }

    /// Returns when a daemon listens.
    ///
    /// - Throws: as `DaemonConnection.start`.
    func waitForDaemon() async throws { _ = try await start.value }

    /// A mount begins, or has ended a signal's unmount: the next signal unmounts, and one more before that is done ends this process.
    func expectUnmount() {
        reaction.withLock { if $0 != .none { $0 = .unmount } }
    }

    /// The domain is mounted: this process does not end before its unmount has begun.
    func didMount(_ domain: DomainReference) { mounted.withLock { $0 = domain } }

    /// Does what a signal asks for.
    func interrupt() {
        let current = reaction.withLock { reaction in
            defer { reaction = reaction == .unmount ? .leave : .none }
            return reaction
        }
        switch current {
        case .unmount: unmounting.yield()
        case .leave, .end:
            Task {
                if current == .leave { await beginUnmount() }
                await end()
                // exit would wait for a read of standard input.
                _exit(130)
            }
        case .none: break
        }
    }

    var isInterrupted: Bool { reaction.withLock { $0 == .none } }

    /// How long a second signal waits for the answer to a mount that may be visible already.
    private static let patienceForMount = Duration.seconds(1)
    /// How long it waits for a daemon that may not respond.
    private static let patience = Duration.seconds(5)

    /// Returns when the daemon has begun to unmount the domain, or does not in time. That the request was sent is not enough: the
    /// daemon may drop one whose client has ended before it was read.
    private func beginUnmount() async {
        let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
        Task {
            if let domain = await mountedDomain() {
                _ = try? await daemon.perform(quietly: .unmount(domain), onEvent: { _ in beginning.finish() })
            }
            beginning.finish()
        }
        Task {
            try? await Task.sleep(for: Self.patience)
            beginning.finish()
        }
        for await _ in begun {}
    }

    /// - Returns: nil if it is not mounted in time.
    private func mountedDomain() async -> DomainReference? {
        let deadline = ContinuousClock.now + Self.patienceForMount
        while true {
            if let domain = mounted.withLock(\.self) { return domain }
            guard ContinuousClock.now < deadline else { return nil }
            try? await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Waits until the mounted domain is unmounted, and unmounts it on a signal. Then ends the daemon.
    func stay() async {
        guard let domain = mounted.withLock(\.self) else { return }
        let interruptions = Task {
            for await _ in unmounts {
                _ = try? await daemon.perform(.unmount(domain))
                expectUnmount()
            }
        }
        _ = try? await daemon.perform(.follow(domain))
        interruptions.cancel()
        await end()
    }

    /// Ends the daemon if it was started for this mount, and waits for its end.
    func end() async {
        guard let process = try? await start.value else { return }
        _ = try? await daemon.perform(quietly: .shutdown)
        await process.waitForEnd()
    }
}

/// Calls a function for each SIGINT, SIGTERM and SIGHUP, which do not end this process.
final class Interruptions {
    private let sources: [any DispatchSourceSignal]

    init(_ handle: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM, SIGHUP].compactMap { number -> (any DispatchSourceSignal)? in
            let earlier = signal(number, SIG_IGN)
            // nohup ignores it: the mount goes on without the terminal.
            if number == SIGHUP, earlier != nil { return nil }
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { handle() }
            source.resume()
            return source
        }
    }

    func cancel() {
        for source in sources { source.cancel() }
    }
}
