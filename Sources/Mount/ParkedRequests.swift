import FUSE
import Synchronization
import FileProvider
import SystemPackage
import Volume

/// Answers requests, and parks those with a missing prerequisite until it is fulfilled. An interrupted request fails with
/// EINTR and cancels its prerequisite.
final class ParkedRequests: Sendable {
    private let provisioning: any Provisioning
    /// The maximum number of attempts of one request: a fulfilled prerequisite may be evicted before it is used.
    private static let maximumRounds = 64

    init(provisioning: any Provisioning) {
        self.provisioning = provisioning
    }

    /// Answers a request at once if possible, else after its prerequisite is fulfilled.
    ///
    /// - Parameters:
    ///   - attempt: asks the volume, first with false, and again with true each time its prerequisite was fulfilled.
    ///   - attemptUnlisted: asks the volume when the required listing fails because the remote is unreachable or rejects
    ///     the credentials; nil if the request cannot succeed without a listing.
    ///   - succeed: sends the answer.
    func answer<Held: Reply & ~Copyable, Answer>(
        _ request: Request, _ reply: consuming Held,
        attempt: @escaping @Sendable (_ isProvided: Bool) throws(VolumeError) -> Answer,
        attemptUnlisted: (@Sendable () throws(VolumeError) -> Answer)? = nil,
        succeed: @escaping @Sendable (consuming Held, Answer) -> Void
    ) {
        let prerequisite: Prerequisite
        switch Self.outcome(of: attempt, false) {
        case .success(let answer): return succeed(reply, answer)
        case .failure(.refused(let error)): return reply.fail(error)
        case .failure(.needs(let missing)): prerequisite = missing
        }
        let caller = Requester(
            processIdentifier: request.caller.processID, userIdentifier: request.caller.userID,
            groupIdentifier: request.caller.groupID)
        let pending = PendingCancellation()
        let parked = ParkedReply(reply) { parked in
            pending.cancel()
            parked.take()?.fail(.interrupted)
        }
        wait(
            for: prerequisite, caller: caller, parked, pending, round: 1, attempt: attempt,
            attemptUnlisted: attemptUnlisted, succeed: succeed)
    }

    /// Whether a listing failed because the remote is unreachable.
    private static func isAway(_ error: Errno, for prerequisite: Prerequisite) -> Bool {
        guard case .listing = prerequisite else { return false }
        return error == .noRouteToHost || error == .keyRejected
    }

    private func wait<Held: Reply & ~Copyable, Answer>(
        for prerequisite: Prerequisite, caller: Requester, _ parked: ParkedReply<Held>, _ pending: PendingCancellation,
        round: Int,
        attempt: @escaping @Sendable (Bool) throws(VolumeError) -> Answer,
        attemptUnlisted: (@Sendable () throws(VolumeError) -> Answer)?,
        succeed: @escaping @Sendable (consuming Held, Answer) -> Void
    ) {
        let cancellation = provisioning.provide(prerequisite, for: caller) { error in
            if let error {
                if error == .staleNFSFileHandle, round < Self.maximumRounds,
                    case .failure(.needs(let newest)) = Self.outcome(of: attempt, false), newest != prerequisite
                {
                    // An open file that no process has read from follows the remote to its new version.
                    self.wait(
                        for: newest, caller: caller, parked, pending, round: round + 1, attempt: attempt,
                        attemptUnlisted: attemptUnlisted, succeed: succeed)
                    return
                }
                if Self.isAway(error, for: prerequisite), let attemptUnlisted,
                    case .success(let answer) = Result(catching: { () throws(VolumeError) in try attemptUnlisted() })
                {
                    if let reply = parked.take() { succeed(reply, answer) }
                    return
                }
                parked.take()?.fail(error)
                return
            }
            switch Self.outcome(of: attempt, true) {
            case .success(let answer):
                if let reply = parked.take() { succeed(reply, answer) }
            case .failure(.refused(let error)):
                parked.take()?.fail(error)
            case .failure(.needs(let prerequisite)):
                guard round < Self.maximumRounds else {
                    parked.take()?.fail(.ioError)
                    return
                }
                self.wait(
                    for: prerequisite, caller: caller, parked, pending, round: round + 1, attempt: attempt,
                    attemptUnlisted: attemptUnlisted, succeed: succeed)
            }
        }
        pending.hold(cancellation)
    }

    private static func outcome<Answer>(
        of attempt: (Bool) throws(VolumeError) -> Answer, _ isProvided: Bool
    ) -> Result<Answer, VolumeError> {
        Result { () throws(VolumeError) in try attempt(isProvided) }
    }
}

/// The cancellation of a parked request's prerequisite. The request may be interrupted before the cancellation is known.
private final class PendingCancellation: Sendable {
    private struct State {
        var cancellation: (any Cancellation)?
        var isCancelled = false
    }

    private let state = Mutex(State())

    func hold(_ cancellation: any Cancellation) {
        let isCancelled = state.withLock { state in
            state.cancellation = cancellation
            return state.isCancelled
        }
        if isCancelled { cancellation.cancel() }
    }

    func cancel() {
        let cancellation = state.withLock { state in
            state.isCancelled = true
            return state.cancellation
        }
        cancellation?.cancel()
    }
}
